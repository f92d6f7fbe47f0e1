// Reading what is compressed in the page, also where the browser has no DecompressionStream.

/** The text of one part: base64 of zlib's format. */
export async function inflated(base64) {
  const bytes = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
  if (typeof DecompressionStream === "undefined") return new TextDecoder().decode(inflate(bytes));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).text();
}

const LENGTH_BASE = [
  3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131,
  163, 195, 227, 258,
];
const LENGTH_BITS = [
  0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0,
];
const DISTANCE_BASE = [
  1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049,
  3073, 4097, 6145, 8193, 12289, 16385, 24577,
];
const DISTANCE_BITS = [
  0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13,
];
const CODE_ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/** zlib's format (RFC 1950 and 1951), inflated. */
export function inflate(bytes) {
  const bits = new Bits(bytes, 2);
  const out = new Growing();
  for (let last = 0; !last; ) {
    last = bits.take(1);
    const kind = bits.take(2);
    if (kind === 0) stored(bits, out);
    else if (kind === 1)
      coded(bits, out, fixedLengths(), new Code(Array.from({ length: 30 }, () => 5)));
    else if (kind === 2) coded(bits, out, ...ownCodes(bits));
    else throw new Error("not what this page was written with");
  }
  return out.bytes.subarray(0, out.size);
}

class Bits {
  constructor(bytes, at) {
    this.bytes = bytes;
    this.at = at;
    this.held = 0;
    this.count = 0;
  }
  take(wanted) {
    while (this.count < wanted) {
      this.held |= this.bytes[this.at++] << this.count;
      this.count += 8;
    }
    const found = this.held & ((1 << wanted) - 1);
    this.held >>>= wanted;
    this.count -= wanted;
    return found;
  }
}

class Growing {
  constructor() {
    this.bytes = new Uint8Array(1 << 16);
    this.size = 0;
  }
  push(byte) {
    if (this.size === this.bytes.length) {
      const larger = new Uint8Array(2 * this.size);
      larger.set(this.bytes);
      this.bytes = larger;
    }
    this.bytes[this.size++] = byte;
  }
}

class Code {
  constructor(lengths) {
    this.counts = Array.from({ length: 16 }, () => 0);
    for (const length of lengths) this.counts[length]++;
    this.counts[0] = 0;
    const starts = [0, 0];
    for (let length = 1; length < 15; length++) starts.push(starts[length] + this.counts[length]);
    this.symbols = [];
    lengths.forEach((length, symbol) => {
      if (length) this.symbols[starts[length]++] = symbol;
    });
  }
  read(bits) {
    let code = 0;
    let first = 0;
    let index = 0;
    for (let length = 1; length < 16; length++) {
      code |= bits.take(1);
      const count = this.counts[length];
      if (code - count < first) return this.symbols[index + (code - first)];
      index += count;
      first = (first + count) << 1;
      code <<= 1;
    }
    throw new Error("not what this page was written with");
  }
}

function stored(bits, out) {
  bits.held = bits.count = 0;
  const size = bits.bytes[bits.at] | (bits.bytes[bits.at + 1] << 8);
  bits.at += 4;
  for (let left = size; left; left--) out.push(bits.bytes[bits.at++]);
}

function coded(bits, out, lengths, distances) {
  for (;;) {
    const symbol = lengths.read(bits);
    if (symbol === 256) return;
    if (symbol < 256) {
      out.push(symbol);
      continue;
    }
    const size = LENGTH_BASE[symbol - 257] + bits.take(LENGTH_BITS[symbol - 257]);
    const far = distances.read(bits);
    const back = DISTANCE_BASE[far] + bits.take(DISTANCE_BITS[far]);
    for (let left = size; left; left--) out.push(out.bytes[out.size - back]);
  }
}

function fixedLengths() {
  const lengths = Array.from({ length: 288 }, () => 8);
  return new Code(lengths.fill(9, 144, 256).fill(7, 256, 280));
}

function ownCodes(bits) {
  const literals = bits.take(5) + 257;
  const distances = bits.take(5) + 1;
  const number = bits.take(4) + 4;
  const own = Array.from({ length: 19 }, () => 0);
  for (let at = 0; at < number; at++) own[CODE_ORDER[at]] = bits.take(3);
  const code = new Code(own);
  const lengths = [];
  while (lengths.length < literals + distances) {
    const symbol = code.read(bits);
    if (symbol < 16) lengths.push(symbol);
    else if (symbol === 16) repeat(lengths, lengths.at(-1), bits.take(2) + 3);
    else if (symbol === 17) repeat(lengths, 0, bits.take(3) + 3);
    else repeat(lengths, 0, bits.take(7) + 11);
  }
  return [new Code(lengths.slice(0, literals)), new Code(lengths.slice(literals))];
}

function repeat(lengths, value, times) {
  for (let left = times; left; left--) lengths.push(value);
}
