// The same in another language: the request on standard input, the answer on standard output.
let text = "";
process.stdin.on("data", (more) => (text += more));
process.stdin.on("end", async () => {
  const { messages } = JSON.parse(text);
  const reply = await fetch(`${process.env.OPENAI_BASE_URL}/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${process.env.OPENAI_API_KEY}` },
    body: JSON.stringify({ model: "any", messages }),
  });
  if (!reply.ok) throw new Error(await reply.text());
  console.log((await reply.json()).choices[0].message.content);
});
