"""A small HTTP/1.1 server for loopback: that of the embedded endpoint and the bridge.

    messages      what comes in, what goes out, OpenAI's error object
    connection    one client: bytes to requests, responses to bytes
    server        a port, a thread with its own event loop, and their end

Knows no chat, no keys and no routes: a `Handler` turns a `Request` into a `Response`.
"""
