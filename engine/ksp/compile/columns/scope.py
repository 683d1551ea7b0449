"""What the code of a column function is made in: early values by name, and functions of a node asked part by part."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ksp.check.stages import children
from ksp.check.typed import (
    Apply,
    Binding,
    Comprehend,
    Constant,
    Expr,
    Has,
    Kind,
    LetIn,
    Logic,
    NodeScore,
    Op,
    Read,
    Ref,
    Stage,
    StructOf,
    Text,
)
from ksp.check.types import Bool, Double, Int, Type
from ksp.compile import code
from ksp.compile.columns.reads import NodeReads, PartOf, Reader, UnfitError
from ksp.compile.emit import Chain, Emitter
from ksp.compile.free import FreeNames
from ksp.compile.places import Clauses, Column, Frame, Lines, Place, key_of, shape

ROWS = code.name("rows")
KINDS: dict[type[Type], str] = {Bool: "_bool", Int: "int", Double: "float"}


def is_number(type: Type) -> bool:
    """Values of the type are the elements of arrays."""
    return isinstance(type, Bool | Int | Double)


class Scope:
    """Code of one column function. `raw` is the name of the scores in `normal`, "" elsewhere."""

    def __init__(self, emitter: Emitter, frame: Frame, raw: str = "") -> None:
        self.emitter = emitter
        self.frame = frame
        self.raw = raw
        self.noisy = False  # it computes what NumPy would warn of
        self.free = FreeNames()  # its own: the values of lets may be others than in the scalar code
        self._arrays: dict[Place, dict[Binding, str]] = {}
        self._forms: dict[Place, dict[str, str]] = {}

    # ---- what reads the node

    @property
    def reader(self) -> Reader:
        return Reader(self.late, self._names, self.emitter.lets)

    def _names(self, expr: Expr) -> frozenset[object]:
        return self.free.through_lets(expr, self.emitter.lets)

    def late(self, expr: Expr) -> bool:
        """The expression's value can differ from row to row."""
        if isinstance(expr, NodeScore):
            return True
        names = self.free.through_lets(expr, self.emitter.lets)
        return any(name == "scores" or (isinstance(name, Binding) and key_of(name) == "node") for name in names)

    def early(self, expr: Expr, chain: Chain) -> ast.expr:
        """The code of an expression that does not read the node."""
        return self.emitter.expr(expr, chain)

    # ---- places

    def here(self, chain: Chain) -> Lines:
        """Where statements go."""
        place = chain[-1]
        assert isinstance(place, Lines)
        return place

    def kept(self, value: ast.expr, chain: Chain, hint: str = "v") -> ast.expr:
        """The value under a name."""
        return value if isinstance(value, ast.Name | ast.Constant) else code.name(self.here(chain).assign(value, hint))

    def named(self, value: ast.expr, chain: Chain, hint: str) -> str:
        """A new name that the code may change."""
        name = self.emitter.names.fresh(hint)
        self.here(chain).put(name, value)
        return name

    def let(self, value: Expr, name: str = "item") -> Binding:
        """A name for an expression, wherever it is read."""
        made = Binding(name, Kind.LET, value.type, value.span, Stage.NODE)
        self.emitter.lets[made] = value
        return made

    def array_of(self, binding: Binding, chain: Chain) -> str | None:
        """The name of the array of a `let`, if it was computed where this is."""
        found = (self._arrays[place][binding] for place in chain if binding in self._arrays.get(place, {}))
        return next(found, None)

    def keep_array(self, binding: Binding, value: ast.expr, chain: Chain) -> ast.expr:
        name = value.id if isinstance(value, ast.Name) else self.here(chain).assign(value, binding.name)
        self._arrays.setdefault(chain[-1], {})[binding] = name
        return code.name(name)

    @contextmanager
    def attempt(self, chain: Chain) -> Iterator[None]:
        """Takes back what was written, if it comes to nothing."""
        states = [_State(place) for place in chain]
        arrays = {place: dict(names) for place, names in self._arrays.items()}
        forms = {place: dict(names) for place, names in self._forms.items()}
        try:
            yield
        except UnfitError:
            for state in states:
                state.restore()
            self._arrays, self._forms = arrays, forms
            raise

    # ---- by parts

    def home(self, exprs: Sequence[Expr], chain: Chain) -> Chain:
        """The outermost place that knows what the expressions read: before the rows come, before loops over them, or
        here. Nothing leaves an `if` for the place around it."""
        names = {n for e in exprs for n in self.free.through_lets(e, self.emitter.lets)}
        if any(isinstance(n, Binding) and _is_view_of_feasible(n) for n in names):
            return chain
        keys = [key_of(n) if isinstance(n, Binding) else n for n in names]
        needed = [key for key in keys if chain[-1].name_of(key) is not None]
        assert self.frame.parent is not None
        places = (self.frame.parent, *(place for place in chain[chain.index(self.frame) :] if isinstance(place, Lines)))
        home = next(place for place in places if all(place.name_of(key) is not None for key in needed))
        return chain if home is chain[-1].level else _until(home, chain)

    def inside(self, exprs: Sequence[Expr], chain: Chain) -> Chain:
        """The same for what is computed from rows."""
        outer = self.home(exprs, chain)
        return outer if self.frame in outer else _until(self.frame, chain)

    def once(self, expr: Expr, chain: Chain, make: Callable[[Chain], ast.expr]) -> ast.expr:
        """What `make` computes, computed once for all expressions of the same form."""
        at = self.inside([expr], chain)
        if at[-1] is self.frame and chain[-1].level is self.frame:
            at = chain
        form = likeness(expr, {})
        found = next((self._forms[place][form] for place in chain if form in self._forms.get(place, {})), None)
        if found is None:
            made = make(at)
            found = made.id if isinstance(made, ast.Name) else self.here(at).assign(made, "v")
            self._forms.setdefault(at[-1], {})[form] = found
        return code.name(found)

    def function(self, expr: Expr, chain: Chain, hint: str = "part") -> ast.expr:
        """The name of a function that gives the expression's value for one node."""
        outer = self.home([expr], chain)
        frame = Frame(outer[-1], self.emitter.names)
        frame.names["node"] = "node"
        made = self.emitter.expr(expr, (*outer, frame))
        name = self.emitter.names.fresh(hint)
        self.here(outer).lines.append(code.function(name, ["node"], [*frame.lines, code.return_(made)]))
        return code.name(name)

    def parts(self, reads: NodeReads, chain: Chain) -> ast.expr:
        """The parts, as a tuple; each once."""
        made = {shape(part, {}): part for part in (self.part(p, chain) for p in reads.parts)}
        return code.tuple_of(list(made.values()))

    def part(self, part: PartOf, chain: Chain) -> ast.expr:
        path: list[ast.expr] = [code.constant(step) for step in part.path]
        return code.tuple_of([*path, *([self.early(part.key, chain)] if part.key is not None else [])])

    def asks_by_parts(self, made: ast.expr, expr: Expr, chain: Chain) -> bool:
        """An operand is computed part by part, and the whole expression reads no other parts: then all of it may be."""
        if not isinstance(made, ast.Name):
            asked = [n for n in ast.walk(made) if isinstance(n, ast.Call) and _name_of(n) == "_by_parts"]
            reads = self.reader.of(expr) if asked and made not in asked else None
            if reads is not None and not reads.whole and not reads.maps:
                parts = shape(self.parts(reads, chain), {})
                return any(shape(call.args[1], {}) == parts for call in asked)
        return False

    def by_parts(self, expr: Expr, chain: Chain, *, best: bool = False) -> ast.expr | None:
        """The array of the expression, computed for each combination of the parts that it reads; None if it reads
        more, or with `best` if code over arrays may do better."""
        reads = self.reader.of(expr)
        if reads.whole or (best and not reads.best_by_parts) or type(expr.type) not in KINDS:
            return None
        parts, function = self.parts(reads, chain), self.function(expr, chain)
        kind = code.name(KINDS[type(expr.type)])
        if not reads.maps:
            return code.call("_by_parts", ROWS, parts, function, kind)
        maps = {shape(made, {}): made for made in (self.early(each, chain) for each in reads.maps)}
        return code.call("_by_name", ROWS, code.tuple_of(list(maps.values())), parts, function, kind)


def _until(home: Place, chain: Chain) -> Chain:
    """The chain as it is seen from one of its places, with what the loops around that compute early."""
    lineage = set(home.lineage())
    return tuple(p for p in chain if p in lineage or (isinstance(p, Column) and p.body in lineage))


def _name_of(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _is_view_of_feasible(binding: Binding) -> bool:
    return binding.kind is Kind.VIEW and binding.view is not None and binding.view.relation == "feasible"


def likeness(expr: Expr, renamed: dict[Binding, str]) -> str:
    """The expression as a text that tells it from others, whatever its own variables are called."""
    match expr:
        case Constant(value=value):
            return f"{type(value).__name__} {value!r}"
        case Ref(binding=binding):
            return renamed.get(binding) or (
                binding.name if binding.kind is Kind.ROOT else f"{binding.name}@{id(binding)}"
            )
        case Comprehend(variables=variables, range=range_, body=body):
            inner = renamed | {variable: f"${len(renamed) + i}" for i, variable in enumerate(variables)}
            return f"{expr.kind}({likeness(range_, renamed)}, {likeness(body, inner)})"
        case LetIn(binding=binding, value=value, body=body):
            return f"let({likeness(value, renamed)}, {likeness(body, renamed | {binding: f'${len(renamed)}'})})"
    parts = ", ".join(likeness(child, renamed) for child in children(expr))
    return f"{type(expr).__name__}[{_own(expr)}]({parts})"


def _own(expr: Expr) -> str:
    """What an expression says beside its parts."""
    match expr:
        case Read(field=field) | Has(field=field):
            return f"{field.owner}.{field.name}"
        case Op(operator=operator) | Logic(operator=operator):
            return operator
        case Apply(row=row):
            return f"{row.name} {id(row.run)} {expr.type}"
        case StructOf(fields=fields):
            return f"{expr.type} {[field.name for field, _ in fields]}"
        case Text(parts=parts):
            return repr([part if isinstance(part, str) else None for part in parts])
    return ""


class _State:
    """A place as it was."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.names, self.known = dict(place.names), dict(place.known)
        self.lines = list(place.lines) if isinstance(place, Lines) else []
        self.clauses = list(place.clauses) if isinstance(place, Clauses) else []
        self.own = list(place.own) if isinstance(place, Column) else []

    def restore(self) -> None:
        place = self.place
        place.names, place.known = self.names, self.known
        if isinstance(place, Lines):
            place.lines[:] = self.lines
        if isinstance(place, Clauses):
            place.clauses[:] = self.clauses
        if isinstance(place, Column):
            place.own[:] = self.own
