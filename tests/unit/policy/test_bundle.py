"""Folders of policies as keys of a ConfigMap: nothing but references changes, and the same rules come of it."""

from __future__ import annotations

import re

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ksp.check.program import Checker
from ksp.policy.bundle import LONGEST_KEY, Bundle, bundled, keys_of, manifest, rewritten
from ksp.policy.texts import TESTS, PolicyTexts
from ksp.source.origin import Texts

VALID = re.compile(r"[-._a-zA-Z0-9]+")


def bundle_of(files: dict[str, str]) -> Bundle:
    roots = tuple(path for path in files if path.endswith(".ksp") and not path.endswith(TESTS))
    return bundled(PolicyTexts("policies", files, roots))


# ---- names


@pytest.mark.parametrize(
    ("paths", "keys"),
    [
        (["a.ksp", "b_1.test.ksp"], ["a.ksp", "b_1.test.ksp"]),
        (["lib/gpu.ksp", "lib/deep/x.yaml"], ["lib-gpu.ksp", "lib-deep-x.yaml"]),
        (["lib/gpu.ksp", "lib-gpu.ksp"], ["lib-gpu-2.ksp", "lib-gpu.ksp"]),
        (["a/b-c.ksp", "a-b/c.ksp", "a/b/c.ksp"], ["a-b-c-2.ksp", "a-b-c.ksp", "a-b-c-3.ksp"]),
        (["größe.ksp", "gr__e.ksp", "my rules.ksp"], ["gr__e-2.ksp", "gr__e.ksp", "my_rules.ksp"]),
        (["lib/test.ksp", "lib/gpu.test.ksp"], ["lib-test.ksp", "lib-gpu.test.ksp"]),
        (["a/x.test.ksp", "a-x.test.ksp"], ["a-x-2.test.ksp", "a-x.test.ksp"]),
        ([".hidden/pod.yaml", "policy.cfg", "fixtures/none"], ["_hidden-pod.yaml", "file-policy.cfg", "fixtures-none"]),
    ],
)
def test_names_are_flat_and_can_be_read(paths: list[str], keys: list[str]) -> None:
    found = keys_of(paths)
    assert [found[path] for path in paths] == keys


def test_long_names_are_cut_and_keep_what_they_are() -> None:
    paths = ["/".join(["folder" * 10] * 6) + f"/{name}" for name in ("a.test.ksp", "b.test.ksp", "pod.yaml")]
    keys = [keys_of(paths)[path] for path in paths]
    assert len(set(keys)) == 3
    assert [len(key) for key in keys] == [LONGEST_KEY] * 3
    assert [key.endswith(ending) for key, ending in zip(keys, (TESTS, TESTS, ".yaml"), strict=True)] == [True] * 3


PARTS = st.text(st.sampled_from("ab.-_ é"), min_size=1, max_size=4)
PATHS = st.builds(
    lambda parts, ending: "/".join(parts) + ending, st.lists(PARTS, min_size=1, max_size=3),
    st.sampled_from([".ksp", ".test.ksp", ".yaml", ""]),
)  # fmt: skip


@settings(max_examples=150)
@given(st.sets(PATHS, max_size=12))
def test_no_two_files_get_one_key_and_each_stays_what_it_is(paths: set[str]) -> None:
    found = keys_of(paths)
    assert len(set(found.values())) == len(paths)
    for path, key in found.items():
        assert VALID.fullmatch(key)
        assert not key.startswith(".")
        assert (key.endswith(".ksp"), key.endswith(TESTS)) == (path.endswith(".ksp"), path.endswith(TESTS))
        if VALID.fullmatch(path) and not path.startswith("."):
            assert key == path


# ---- references

MAIN = """// import "lib/gpu.ksp" is no import
import   'lib/gpu.ksp'   // why
import "ksp:lib/nodes.ksp"
import "flat.ksp"
import "lib/../x.ksp"
import "gone.ksp"
/// "lib/gpu.ksp"
predicate P { deny "lib/gpu.ksp" when asksForGpu(pod) || flat }\t
test "from 'fixtures/pod.yaml'" {
  pod web from "fixtures/pod.yaml"
  pod raw from r'fixtures/./pod.yaml'
  node n {}
  expect P admits web on n
}"""


def test_only_references_change_and_only_those_that_must() -> None:
    keys = {"main.ksp": "main.ksp", "lib/gpu.ksp": "lib-gpu.ksp", "flat.ksp": "flat.ksp", "fixtures/pod.yaml": "f.yaml"}
    wanted = MAIN.replace("import   'lib/gpu.ksp'", 'import   "lib-gpu.ksp"')
    wanted = wanted.replace('web from "fixtures/pod.yaml"', 'web from "f.yaml"')
    wanted = wanted.replace("raw from r'fixtures/./pod.yaml'", 'raw from "f.yaml"')
    assert rewritten(MAIN, "main.ksp", keys) == wanted


def test_references_are_seen_from_the_file_that_has_them() -> None:
    keys = {"a/b/c.ksp": "a-b-c.ksp", "a/b/x.ksp": "a-b-x.ksp", "x.ksp": "x.ksp", "a/b/pods/p.yaml": "a-b-pods-p.yaml"}
    text = 'import "x.ksp"\ntest "t" { pod p from "pods/p.yaml" node n {} expect X admits p on n }\n'
    made = rewritten(text, "a/b/c.ksp", keys)
    assert made == text.replace("x.ksp", "a-b-x.ksp").replace("pods/p.yaml", "a-b-pods-p.yaml")


def test_a_text_that_is_no_policy_stays() -> None:
    for text in ("", "import", 'import "lib/gpu.ksp', "\ufeffpredicate {{{", "\x00"):
        assert rewritten(text, "main.ksp", {"lib/gpu.ksp": "lib-gpu.ksp"}) == text


# ---- the same rules


@st.composite
def trees(draw: st.DrawFn) -> dict[str, str]:
    """Files in folders, each with a rule that calls functions of those that it imports; none imports a later one."""
    paths = draw(
        st.lists(PATHS.map(lambda path: f"{path.rstrip('.ksp').rstrip('/') or 'x'}.ksp"), max_size=6, unique=True)
    )
    files: dict[str, str] = {}
    for number, path in enumerate(paths):
        folder = path.rpartition("/")[0]
        near = [
            (other, index) for index, other in enumerate(paths[:number])
            if not folder or other.startswith(f"{folder}/")
        ]  # fmt: skip
        named = draw(st.lists(st.sampled_from(near), unique=True)) if near else []
        imports = "".join(f'import "{other.removeprefix(folder).lstrip("/")}" // {other}\n' for other, _ in named)
        calls = "".join(f" + f{index}(n)" for _, index in named)
        files[path] = (
            f"{imports}fn f{number}(n: int): int = n{calls} + {number}\n"
            f'predicate R{number} {{ deny "é {number}" when f{number}(node.podCount) > 3 }}\n'
        )
    return files


def rules_of(files: dict[str, str], path: str) -> tuple[dict[str, str], list[str]]:
    checker = Checker(Texts(files))
    module = checker.check(path)
    assert module is not None
    rules = {name: rule.span.source.text[rule.span.start :] for name, rule in module.rules().items()}
    return rules, [found.code for found in checker.report.found]


@settings(max_examples=60, deadline=None)
@given(trees())
def test_random_trees_mean_the_same_flat(files: dict[str, str]) -> None:
    made = bundle_of(files)
    flat = dict(made.texts.files)
    assert flat.keys() == set(made.keys.values())
    for path, key in made.keys.items():
        assert rules_of(flat, key) == rules_of(files, path)
        assert re.sub('"[^"]*"', "", flat[key]) == re.sub('"[^"]*"', "", files[path])


def test_a_legacy_policy_is_its_key() -> None:
    made = bundled(PolicyTexts("old.json", {"old.json": '{"kind": "Policy"}'}, (), legacy="old.json"))
    assert (made.texts.legacy, made.texts.files) == ("policy.cfg", {"policy.cfg": '{"kind": "Policy"}'})


# ---- the manifest


@settings(max_examples=200)
@given(
    st.lists(
        st.text(st.sampled_from("ab \n\r\t\"'#:\\\x85\u2028\ufeffé𝄞-|>%&*{}"), max_size=20), min_size=1, max_size=3
    )
)
def test_a_manifest_keeps_every_character(texts: list[str]) -> None:
    files = {f"{number}.ksp": text for number, text in enumerate(texts)}
    made = bundle_of(files)
    document = yaml.safe_load(manifest(made, "policy", "kube-system"))
    assert document["data"] == files
    assert document["metadata"] == {"name": "policy", "namespace": "kube-system"}
    assert made.size == sum(len(text.encode()) for text in texts)


def test_a_manifest_can_be_read_by_people_and_does_not_depend_on_the_order_of_files() -> None:
    files = {"b.ksp": "// b\n\n  x: |\n", "a.ksp": 'import "b.ksp"\n'}
    text = manifest(bundle_of(files), "p", "n")
    assert text == manifest(bundle_of(dict(reversed(files.items()))), "p", "n")
    assert text == (
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: p\n  namespace: n\ndata:\n"
        '  a.ksp: |\n    import "b.ksp"\n  b.ksp: |\n    // b\n\n      x: |\n'
    )
