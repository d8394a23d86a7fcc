# One portion of work for each line of input, answered by what came of it. All
# portions are alike, and give the same answer.
import collections, contextlib, decimal, fractions, functools, hashlib, json, random, re, struct, sys, textwrap, threading, zlib


class Node:
    def __init__(self, value):
        self.value, self.left, self.right = value, None, None

    def insert(self, value):
        if value < self.value:
            if self.left is None:
                self.left = Node(value)
            else:
                self.left.insert(value)
        elif self.right is None:
            self.right = Node(value)
        else:
            self.right.insert(value)

    def __iter__(self):
        if self.left is not None:
            yield from self.left
        yield self.value
        if self.right is not None:
            yield from self.right


@contextlib.contextmanager
def caught(kind):
    try:
        yield
    except kind:
        pass


def fail(depth):
    try:
        if depth == 0:
            raise KeyError("deep")
        return fail(depth - 1) + 1
    finally:
        depth = None


def portion():
    r = random.Random(42)
    words = ["".join(r.choice("abcdefgh") for _ in range(r.randrange(2, 9))) for _ in range(900)]
    counted = collections.Counter(words)
    tree = Node(500)
    for _ in range(300):
        tree.insert(r.randrange(1000))
    document = json.loads(json.dumps({w: [i, {"n": i / 7, "s": w * 2}] for i, w in enumerate(words)}))
    text = " ".join(words)
    packed = zlib.compress(text.encode() * 4, 6)
    assert zlib.decompress(packed) == text.encode() * 4
    for i in range(60):
        with caught(KeyError):
            fail(i % 20)
    total = decimal.Decimal(0)
    for i in range(1, 120):
        total += decimal.Decimal(i).sqrt() / 3
    half = sum((fractions.Fraction(1, i) for i in range(1, 60)), fractions.Fraction(0))
    found = re.findall(r"(?:a|b)+[c-e]*(?=f)", text) + re.split(r"g+h?", text)
    results = [None] * 4

    def run(k):
        results[k] = hashlib.sha256(text.encode() * (k + 1)).hexdigest()

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return hashlib.sha256(repr((
        sorted(counted.items()), list(tree), document, found, str(total), str(half), results,
        textwrap.fill(text, 60), functools.reduce(lambda a, b: (a * 31 + b) % 1000003, packed),
        struct.pack("<dI", 2.5, len(text)),
    )).encode()).hexdigest()


for line in sys.stdin:
    print(portion())
    print("~end", flush=True)
