"""Stars, keywords and names in calls: values, effects and the texts of errors are Python's."""

from __future__ import annotations

import linecache

import pytest

import linnet as ln


def inc(x):
    return x + 1


def kw(*args, **keywords):
    return args, sorted(keywords.items())


def nothing(x):
    return None


class Hint:
    """Notes what is asked of it."""

    def __init__(self):
        self.log = []

    def __iter__(self):
        self.log.append("iter")
        return iter([1, 2])

    def __len__(self):
        self.log.append("len")
        return 2


class Mapping:
    def keys(self):
        return ["a", "b"]

    def __getitem__(self, key):
        return key


class Sequence:
    def __getitem__(self, place):
        return [4, 5, 6][place]


class Box:
    def method(self, **keywords):
        return keywords


def outcome(f):
    log = []
    try:
        return repr(f(log.append)), log
    except Exception as error:
        return type(error), str(error), type(error.__context__), error.__suppress_context__, log


EXPRESSIONS = """
kw(*3) ; kw(1, *3) ; kw(**3) ; kw(a=1, **3) ; kw(**{1: 2}) ; kw(a=1, **{'a': 2}) ; kw(**{'a': 1}, **{'a': 2})
kw(**Mapping()) ; kw(*Sequence(), **Mapping()) ; [*3] ; (*3,) ; {*3} ; {**3} ; [*Sequence()] ; {**Mapping()}
[1].append(*3) ; [1].append(**{'x': 1}) ; 'a'.join(*3) ; len(*3) ; len(*[[1]], *[2]) ; max(*[inc(1), inc(2)])
Box().method(*3) ; Box().method(**{'a': 1}, a=2) ; Box().method(x=inc(1), name=inc(2), self_=3, **{'f': inc(3)})
inc(*[1], **{'x': 2}) ; inc(x=1, **{'x': 2}) ; inc(*nothing(1)) ; inc(**nothing(1)) ; [*inc(1)] ; {**{1: 2}, **{3: inc(4)}}
'{x} {name}'.format(x=inc(1), name=inc(2)) ; dict(x=inc(1), name=2, f=3, line=4, args=5, self=6)
kw(a=log(1), **{'a': 1}, b=log(2)) ; kw(*[log(1)], a=log(2), **{'c': log(3)}) ; inc(1)(*[2]) ; nothing(1).foo(*[2])
(lambda *a, **k: (a, k))(*[inc(1)], **{'q': inc(2)}) ; (lambda a: a)(**{'b': 1}) ; (lambda a: a)(*3) ; (lambda a: a)(1, a=2)
[a for a, b in [inc(1)]] ; [a for a, b in [(1, 2, 3)]] ; [kw(*[i], **{'j': i}) for i in range(3)]
"""


@pytest.mark.parametrize(
    "text", [each.strip() for each in EXPRESSIONS.replace("\n", ";").split(";") if each.strip()]
)
def test_an_expression_is_what_it_is_in_python(text):
    source = f"def program(log):\n    before = inc(1)\n    found = {text}\n    log('after')\n    return found, before\n"
    file = f"<{text}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    names = dict(globals())
    exec(compile(source, file, "exec", dont_inherit=True), names)
    assert outcome(ln.parallel(names["program"])) == outcome(names["program"])


def test_what_stars_ask_of_an_object_is_what_python_asks():
    def program(log):
        h = Hint()
        found = [*h], (*h,), {*h}, kw(*h), kw(1, *h), {**dict.fromkeys(h)}
        return found, h.log

    assert outcome(ln.parallel(program)) == outcome(program)


def test_parameters_may_have_any_name():
    @ln.parallel
    def f(depth, self, args, keywords, task, f, line):
        return inc(depth) + self + args + keywords + task + f + line

    given = {"depth": 1, "self": 2, "args": 3, "keywords": 4, "task": 5, "f": 6, "line": 7}
    assert f(**given) == f.submit(**given).result() == 29
    assert ln.submit_call(kw, f=1, self=2).result() == ((), [("f", 1), ("self", 2)])


def test_functions_inside_keep_their_names():
    def program(log):
        def inside():
            return 1

        return inside.__qualname__, (lambda: 0).__qualname__, inside.__name__

    assert outcome(ln.parallel(program)) == outcome(program)


def test_the_traceback_of_a_call_with_stars_shows_the_function():
    @ln.parallel
    def program(x):
        values = [1, 2]
        return inc(*["a"]), kw(*values)

    with pytest.raises(TypeError) as caught:
        program(1)
    assert [each.name for each in caught.traceback][-2:] == ["program", "inc"]
