package realtest

import (
	"os"
	"path/filepath"
	"testing"
)

// Python starts CPython on script, which prints "ready" and ends at the end of
// its stdin, as the targets do. args follow it in sys.argv.
func Python(t testing.TB, script string, args ...string) *Proc {
	t.Helper()
	path := Tool(t, Python3)
	file := filepath.Join(t.TempDir(), "script.py")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatalf("realtest: python: %v", err)
	}
	return Start(t, path, append([]string{"-u", file}, args...)...)
}

// PythonDepths is a script that keeps Python's C code busy, deeply, on two threads.
const PythonDepths = `
import threading, json, re
def deep(n):
    return n if n == 0 else deep(n - 1) + len(str(n))
def work():
    for i in range(15):
        deep(30)
        json.loads(json.dumps({"a": [1, 2, {"b": "c" * i}]}))
        re.sub("b+", "c", "ab" * i)
t = threading.Thread(target=work)
t.start()
work()
t.join()
`

// PythonWork is a script for [Python]: it keeps a CPU busy with dictionaries,
// strings, sorting, hashing, regular expressions, JSON, exceptions, generators
// and threads, checks every result against the first, and counts rounds.
//
// The digests are asked for by name through hashlib so that an interpreter
// without OpenSSL works too.
const PythonWork = `
import hashlib, json, re, select, sys, threading, zlib

def digits(n):
    return sum(int(c) for c in str(n))

def tree(n):
    for i in range(n):
        yield i
        if i % 7 == 0:
            yield from tree(n // 4)

class Node:
    def __init__(self, key):
        self.key = key
    def __lt__(self, other):
        return self.key < other.key

def failing(n):
    try:
        return [][n]
    except IndexError as e:
        return str(e)

def work():
    words = ["%x" % (i * 2654435761 % 2**32) for i in range(400)]
    table = {w: digits(i) for i, w in enumerate(words)}
    nodes = sorted(Node(w) for w in words)
    text = json.dumps(table, sort_keys=True)
    again = json.loads(text)
    assert again == table
    found = re.findall(r"[0-9a-f]{4,}", text)
    packed = zlib.compress(text.encode())
    assert zlib.decompress(packed).decode() == text
    h = hashlib.sha256(text.encode())
    for n in nodes:
        h.update(n.key.encode())
    for i in range(20):
        h.update(failing(i).encode())
    h.update(str((sum(tree(60)), len(found), 3 ** 300 % 1000003, 22 / 7)).encode())
    return h.hexdigest()

want = work()
print("ready", flush=True)
rounds = 0
while not select.select([sys.stdin], [], [], 0)[0]:
    got = []
    t = threading.Thread(target=lambda: got.append(work()))
    t.start()
    got.append(work())
    t.join()
    if got != [want, want]:
        print("wrong digest", got, want, flush=True)
        sys.exit(1)
    rounds += 2
print("python rounds=%d ok" % rounds, flush=True)
`
