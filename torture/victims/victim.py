# A Python program that has the same result in every round: SQLite, JSON,
# regular expressions, exceptions, generators, sorting.
import hashlib
import json
import re
import sqlite3
import sys

database = sqlite3.connect(":memory:")
database.execute("create table trees (name text, height integer)")


def descend(depth):
    if depth == 0:
        raise ValueError("the ground")
    try:
        descend(depth - 1)
    finally:
        steps.append(depth)


def rows():
    cursor = database.cursor()
    cursor.execute("delete from trees")
    cursor.executemany("insert into trees values (?, ?)", (("tree%d" % (i * 7 % 31), i * i % 101) for i in range(60)))
    cursor.execute("select name, count(*), sum(height), max(height) from trees group by name order by 3 desc, 1")
    return cursor.fetchall()


for _ in sys.stdin:
    steps = []
    digest = hashlib.sha256()
    digest.update(json.dumps(rows(), indent=1).encode())
    for depth in range(12):
        try:
            descend(depth)
        except ValueError as e:
            digest.update(str(e).encode())
    digest.update(bytes(sorted(steps, key=lambda n: -n * n % 11)))
    text = " ".join("%x.%s" % (n * n, "ab" * (n % 5)) for n in range(80))
    digest.update("|".join(m.group(0)[::-1] for m in re.finditer(r"(\d+)\.(ab)*", text)).encode())
    digest.update(json.dumps(json.loads('{"a": [1.5, null, true, "\\u00e4"], "b": {"c": -1e10}}')).encode())
    print(digest.hexdigest()[:16], flush=True)
