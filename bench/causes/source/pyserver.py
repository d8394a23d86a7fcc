"""A server with one planted cause, which the first argument names: pyserver.py PLANT SECONDS [SEED].

A request is one exec() of the plant's handler, which in the interpreter is one call of PyEval_EvalCode.
"""
import copy
import hashlib
import json
import os
import random
import re
import signal
import sys
import threading
import time
import zlib

plant, seconds = sys.argv[1], float(sys.argv[2])
chance = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
serving = True


def stop(*_):
    global serving
    serving = False


def every(ms, run):
    def loop():
        while serving:
            time.sleep(ms / 1000)
            run()
    threading.Thread(target=loop, daemon=True).start()


lock = threading.Lock()
payload = b"x" * (48 << 20)
numbers = [chance.random() for _ in range(150000)]
digits = {False: 3 ** 400, True: 3 ** 60000}
pattern = re.compile(r"(a|aa)+$")


def hash_under_lock():
    with lock:
        hashlib.sha256(payload).digest()  # lets others run, but for the lock


def sort_numbers():
    sorted(numbers)  # lets nobody run


def ordinary(text):
    words = text.split(",")
    return {w: len(w) for w in words}, ",".join(reversed(words))


def big_objects(n):
    return [{"id": i, "name": "name %d" % i} for i in range(n)]


tables = {False: big_objects(10), True: big_objects(8000)}


packed = {False: zlib.compress(payload[:2000]), True: zlib.compress(os.urandom(1 << 20) * 4)}


def forget(name):
    for known in [m for m in sys.modules if m == name or m.startswith(name + ".")]:
        del sys.modules[known]


def fill_database():
    import sqlite3
    db = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
    db.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT)")
    db.executemany("INSERT INTO item VALUES (?, ?)", ((i, "name %d" % i) for i in range(100000)))
    return db


def answer_slowly(conn):
    for n, _ in enumerate(iter(lambda: conn.recv(64), b"")):
        time.sleep(0.02 if n % 300 == 299 else 0.0001)
        conn.send(b"answer")


def slow_peer():
    import socket
    here, there = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        here.close()
        os.close(1)
        try:
            answer_slowly(there)
        finally:
            os._exit(0)
    there.close()
    return here


plants = {
    "collect": ("ordinary(text)\nif odd:\n    gc.collect()", 300, 4, None),
    "json": ("ordinary(text)\njson.dumps(tables[odd])", 300, 4, None),
    "import": ("ordinary(text)\nif odd:\n    forget('asyncio')\n    import asyncio", 300, 8, None),
    "child": ("ordinary(text)\nif odd:\n    subprocess.run(['/bin/sleep', '0.01'])", 300, 8, None),
    "sqlite": ("db.execute(\"SELECT name FROM item WHERE \" + (\"name LIKE '%99999'\" if odd else \"id = 77\")).fetchall()\nordinary(text)", 300, 4, None),
    "socket": ("ordinary(text)\npeer.send(b'ask')\npeer.recv(64)", 0, 12, None),
    "lock": ("with lock:\n    ordinary(text)", 0, 12, lambda: every(300, hash_under_lock)),
    "gil": ("ordinary(text)\nfor i in range(3):\n    time.sleep(0.0003)\nordinary(text)", 0, 12, lambda: every(300, sort_numbers)),
    "collision": ("keys = [i * 2305843009213693951 if odd else i for i in range(600 if odd else 40)]\ndict(zip(keys, keys))", 300, 4, None),
    "digits": ("ordinary(text)\nstr(digits[odd])", 300, 4, None),
    "retry": ("ordinary(text)\nfor attempt in range(5 if odd else 0):\n    time.sleep(0.006)", 300, 12, None),
    "join": ("ordinary(text)\nif odd:\n    t = threading.Thread(target=time.sleep, args=(0.02,))\n    t.start()\n    t.join()", 300, 8, None),
    "deepcopy": ("ordinary(text)\ncopy.deepcopy(tables[odd][:1200])", 300, 4, None),
    "zlib": ("ordinary(text)\nzlib.decompress(packed[odd])", 300, 4, None),
    "regex": ("ordinary(text)\npattern.match('a' * (25 if odd else 4) + 'b')", 300, 4, None),
    "control": ("for i in range(int(5 + chance.expovariate(0.05))):\n    ordinary(text)", 0, 0, None),
}
source, every_ms, slow_ms, background = plants[plant]
handler = compile(source, plant, "exec")
sys.set_int_max_str_digits(0)
if plant == "collect":
    import gc
    kept = [[i, {}] for i in range(150000)]
elif plant == "child":
    import subprocess
elif plant == "sqlite":
    db = fill_database()
elif plant == "socket":
    peer = slow_peer()
elif plant == "import":
    import asyncio
signal.signal(signal.SIGTERM, stop)
signal.alarm(int(seconds) + 20)
if background:
    background()
print("ready", flush=True)
took, begin = [], time.perf_counter()
next_odd = 0.06
names = dict(globals())
while serving and time.perf_counter() - begin < seconds:
    time.sleep(0.0001 + chance.expovariate(1 / 0.0004))
    names["text"] = ",".join(str(chance.randrange(10 ** 6)) for _ in range(20 + chance.randrange(20)))
    start = time.perf_counter()
    names["odd"] = every_ms > 0 and start - begin > next_odd
    if names["odd"]:
        next_odd = start - begin + every_ms / 1000
    exec(handler, names)
    took.append((time.perf_counter() - start) * 1e6)
serving = False
took = sorted(took) or [0]
slow = [t for t in took if slow_ms and t >= slow_ms * 1000]
rest = took[:len(took) - len(slow)] or [0]
print(json.dumps({"requests": len(took), "p50_us": rest[len(rest) // 2], "p95_us": rest[len(rest) * 95 // 100],
                  "p99_us": rest[len(rest) * 99 // 100], "slow": len(slow), "slow_p50_us": slow[len(slow) // 2] if slow else 0,
                  "max_us": took[-1]}), flush=True)
os._exit(0)
