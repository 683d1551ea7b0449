from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click
import pytest
from tests.unit.cli.commands import LIBRARY, ROOM, written

from ksp.cli.run_policy import chosen_policy
from ksp.runtime.options import Policy

IMPORT = 'import "room.ksp"\n'


def of_folder(
    folder: Path, texts: Mapping[str, str], *, name: str | None = None, percentage: int | None = None
) -> Policy:
    return chosen_policy(None, str(written(folder, texts)), None, name, percentage)


def of_file(folder: Path, text: str, *, name: str | None = None, percentage: int | None = None) -> Policy:
    path = written(folder, {"policy.ksp": text, "room.ksp": ROOM, "lib/room.ksp": LIBRARY}) / "policy.ksp"
    return chosen_policy(str(path), None, None, name, percentage)


def names(policy: Policy) -> list[str]:
    return [profile.scheduler_name for profile in policy.profiles]


def test_without_flags_it_is_the_default_scheduler() -> None:
    policy = chosen_policy(None, None, None, None, None)
    assert (policy.name, names(policy)) == ("ksp:default.ksp", ["default-scheduler"])
    assert policy.profiles[0].percentage == 100


@pytest.mark.parametrize("provider", ["DefaultProvider", "ClusterAutoscalerProvider"])
def test_kube_schedulers_providers(provider: str) -> None:
    policy = chosen_policy(None, None, provider, "mine", 0)
    assert (policy.name, names(policy), policy.profiles[0].percentage) == (provider, ["mine"], 0)
    packs = any(active.name == "MostRequestedPriority" for active in policy.profiles[0].priorities)
    assert packs == (provider == "ClusterAutoscalerProvider")


def test_the_profiles_of_a_file(tmp_path: Path) -> None:
    text = IMPORT + 'profile "a" uses Both { percentageOfNodesToScore = 30 }\nprofile "b" uses Both { }\n'
    policy = of_file(tmp_path, text)
    assert names(policy) == ["a", "b"]
    assert [profile.percentage for profile in policy.profiles] == [30, 100]
    assert [profile.percentage for profile in of_file(tmp_path, text, percentage=7).profiles] == [7, 7]


def test_a_single_profile_takes_the_name_of_the_flag(tmp_path: Path) -> None:
    assert names(of_file(tmp_path, IMPORT + 'profile "a" uses Both { }\n', name="mine")) == ["mine"]


def test_what_check_warns_of_comes_with_the_rules(tmp_path: Path) -> None:
    unused = 'predicate Spare {\n  deny "x" when node.name == "a"\n}\n'
    text = IMPORT + unused + 'profile "a" uses Both { }\n'
    (found,) = of_file(tmp_path, text).warnings
    assert (found.code, found.message) == ("KSP0705", "the predicate `Spare` is in no provider")
    tests = {"policy.test.ksp": IMPORT + unused, "policy.ksp": text, "room.ksp": ROOM, "lib/room.ksp": LIBRARY}
    assert [each.span.source.name for each in of_folder(tmp_path, tests).warnings] == [str(tmp_path / "policy.ksp")]
    assert of_file(tmp_path, IMPORT + 'profile "a" uses Both { }\n').warnings == ()


def test_several_profiles_cannot_take_one_name(tmp_path: Path) -> None:
    with pytest.raises(click.UsageError, match=r"declares several profiles \(a, b\)"):
        of_file(tmp_path, IMPORT + 'profile "a" uses Both { }\nprofile "b" uses Both { }\n', name="mine")


@pytest.mark.parametrize(
    ("type", "value", "sound"), [("int", "0", True), ("int", "-1", False), ("string", '"600s"', False)]
)
def test_how_long_volumes_are_waited_for_is_not_negative(tmp_path: Path, type: str, value: str, sound: bool) -> None:
    param = f"param bindTimeoutSeconds: {type} = {value}"
    rule = f'predicate Own implements VolumeBinding {{\n  {param}\n  deny "x" when false\n}}'
    text = f'{rule}\nprovider P {{ predicates {{ Own }} }}\nprofile "a" uses P {{}}\n'
    if sound:
        assert of_file(tmp_path, text).profiles[0].bind_timeout == 0
        return
    with pytest.raises(click.ClickException, match=r'the profile "a": Own\.bindTimeoutSeconds must be a number'):
        of_file(tmp_path, text)


def test_a_file_with_one_provider_and_no_profile_means_that_one(tmp_path: Path) -> None:
    text = IMPORT + "provider Mine extends Both { }\n"
    assert names(of_file(tmp_path, text)) == ["default-scheduler"]
    assert names(of_file(tmp_path, text, name="mine")) == ["mine"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (IMPORT, "no provider"),
        (IMPORT + "provider A extends Both { }\nprovider B extends Both { }\n", "the providers A, B"),
    ],
)
def test_without_a_profile_it_must_be_clear_what_is_meant(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(click.ClickException) as error:
        of_file(tmp_path, text)
    assert said in error.value.message
    assert 'add profile "default-scheduler" uses PROVIDER { }' in error.value.message


# ---- folders


ROOMS = {"room.ksp": ROOM, "lib/room.ksp": LIBRARY}


def test_of_a_folder_all_profiles_count(tmp_path: Path) -> None:
    policy = of_folder(
        tmp_path,
        {
            **ROOMS,
            "a.ksp": IMPORT + 'profile "a" uses Both { }\n',
            "deep/b.ksp": 'import "ksp:default.ksp"\nprofile "b" uses DefaultProvider { }\n',
        },
    )
    assert sorted(names(policy)) == ["a", "b", "default-scheduler"]


def test_a_profile_that_several_files_import_is_one(tmp_path: Path) -> None:
    importing = 'import "a.ksp"\n'
    texts = {**ROOMS, "a.ksp": IMPORT + 'profile "a" uses Both { }\n', "b.ksp": importing, "c.ksp": importing}
    assert names(of_folder(tmp_path, texts)) == ["a"]


def test_who_imports_a_profile_may_replace_it(tmp_path: Path) -> None:
    mine = (
        'import "ksp:default.ksp"\nprofile "default-scheduler" uses DefaultProvider { percentageOfNodesToScore = 5 }\n'
    )
    policy = of_folder(tmp_path, {"mine.ksp": mine})
    assert [(profile.scheduler_name, profile.percentage) for profile in policy.profiles] == [("default-scheduler", 5)]


def test_two_profiles_of_one_name_are_an_error_with_both_places(tmp_path: Path) -> None:
    texts = {**ROOMS, "a.ksp": IMPORT + 'profile "x" uses Both { }\n', "b.ksp": IMPORT + 'profile "x" uses Both { }\n'}
    with pytest.raises(click.ClickException) as error:
        of_folder(tmp_path, texts)
    assert error.value.message == f'the profile "x" is declared twice: {tmp_path}/a.ksp:2 and {tmp_path}/b.ksp:2'


def test_profiles_of_tests_do_not_count(tmp_path: Path) -> None:
    texts = {
        **ROOMS,
        "a.ksp": IMPORT + 'profile "a" uses Both { }\n',
        "a.test.ksp": 'import "a.ksp"\nprofile "only-tested" uses Both { }\n',
    }
    assert names(of_folder(tmp_path, texts)) == ["a"]


def test_a_mistake_in_any_file_of_the_folder_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(click.exceptions.Exit) as error:
        of_folder(tmp_path, {**ROOMS, "a.ksp": IMPORT + 'profile "a" uses Both { }\n', "b.ksp": "provider {\n"})
    assert error.value.exit_code == 1
    assert "b.ksp" in capsys.readouterr().err


def test_a_folder_is_no_file_and_a_file_no_folder(tmp_path: Path) -> None:
    with pytest.raises(click.UsageError, match="name it with --policy-dir"):
        chosen_policy(str(tmp_path), None, None, None, None)
    path = written(tmp_path, ROOMS) / "room.ksp"
    with pytest.raises(click.UsageError, match="name a file with --policy-file"):
        chosen_policy(None, str(path), None, None, None)


# ---- the hash


def test_the_hash_is_of_all_that_was_read_and_not_of_the_place(tmp_path: Path) -> None:
    text = IMPORT + 'profile "a" uses Both { }\n'
    (one, other) = (of_file(tmp_path / "one", text), of_file(tmp_path / "other", text))
    assert one.sha256 == other.sha256
    assert len(one.sha256) == 64
    assert of_file(tmp_path / "one", text + "\n").sha256 != one.sha256
    texts = {"policy.ksp": text, "room.ksp": ROOM, "lib/room.ksp": LIBRARY + "\n"}
    changed = chosen_policy(str(written(tmp_path / "third", texts) / "policy.ksp"), None, None, None, None)
    assert changed.sha256 != one.sha256


def test_files_that_are_not_imported_do_not_change_the_hash_of_a_file(tmp_path: Path) -> None:
    text = IMPORT + 'profile "a" uses Both { }\n'
    before = of_file(tmp_path, text).sha256
    written(tmp_path, {"else.ksp": "// nothing\n"})
    assert of_file(tmp_path, text).sha256 == before
