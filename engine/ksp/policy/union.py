"""Several files as one: where plugins are named, all files of a folder or a ConfigMap count."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from ksp.check.program import Module
from ksp.check.typed import Rule
from ksp.source.text import Source


def union_of(modules: Sequence[Module]) -> Module:
    """One module that sees the rules of all: first those of the files themselves, a file before what it imports, then
    those that they import."""
    if len(modules) == 1:
        return modules[0]
    union = Module("", Source("", ""))
    for module in _importing_first(modules):
        union.own.update({f"{module.key} {name}": each for name, each in module.own.items()})
        union.seen.update({f"{module.key} {name}": each for name, each in module.seen.items()})
        union.imports[module.key] = module
    return union


def ambiguous(modules: Sequence[Module], plugins: Collection[str]) -> Iterator[str]:
    """Of these plugins those that two files implement of which neither imports the other: nobody can tell which is
    meant."""
    first: dict[tuple[str, str], tuple[Module, Rule]] = {}
    for module in _importing_first(modules):
        for rule in module.own_rules():
            other, known = first.setdefault((rule.kind, rule.plugin), (module, rule))
            if rule.plugin in plugins and other is not module and not _imports(other, module):
                places = f"{known.span.where} and {rule.span.where}"
                yield f"two rules implement `{rule.plugin}`, at {places}, and neither file imports the other"


def _importing_first(modules: Sequence[Module]) -> list[Module]:
    """In their order, but a file before what it imports."""
    ordered: list[Module] = []
    for module in modules:
        place = next((i for i, each in enumerate(ordered) if _imports(module, each)), len(ordered))
        ordered.insert(place, module)
    return ordered


def _imports(module: Module, other: Module) -> bool:
    """Whether the one imports the other, be it through others."""
    pending, read = [module], {module.key}
    while pending:
        for key, imported in pending.pop().imports.items():
            if key == other.key:
                return True
            if key not in read:
                read.add(key)
                pending.append(imported)
    return False
