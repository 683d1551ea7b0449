"""Texts and settings to rules: which of them count is the table of precedence in docs/flags.md."""

from __future__ import annotations

import gc
import json
from collections.abc import Mapping, Sequence

import pytest
from tests.unit.cli.commands import LIBRARY, ROOM

from ksp.check.typed import Binding
from ksp.policy.assemble import POLICY_AND_PLUGINS, Policy, Settings, assemble
from ksp.policy.configuration import read_configuration
from ksp.policy.errors import PolicyError
from ksp.policy.load import DEFAULT
from ksp.policy.texts import PolicyTexts

IMPORT = 'import "room.ksp"\n'
ROOMS = {"room.ksp": ROOM, "lib/room.ksp": LIBRARY}
KIND = "kind: KubeSchedulerConfiguration\n"
V1BETA1 = f"apiVersion: kubescheduler.config.k8s.io/v1beta1\n{KIND}"
OWN = """\
predicate Own implements NodeName { deny "no" when node.name == "a" }
priority Weighs implements ImageLocality { score 1 }
"""
ONLY_OWN = """\
profiles:
- schedulerName: NAME
  plugins:
    queueSort: {disabled: [{name: "*"}], enabled: [{name: PrioritySort}]}
    preFilter: {disabled: [{name: "*"}]}
    filter: {disabled: [{name: "*"}], enabled: [{name: NodeName}]}
    postFilter: {disabled: [{name: "*"}]}
    preScore: {disabled: [{name: "*"}]}
    score: {disabled: [{name: "*"}], enabled: [{name: ImageLocality, weight: 3}]}
    reserve: {disabled: [{name: "*"}]}
    preBind: {disabled: [{name: "*"}]}
"""
LEGACY = {"kind": "Policy", "apiVersion": "v1", "predicates": [{"name": "HostName"}], "priorities": []}


def texts(*roots: str, name: str = "mine", shown: str = "", **files: str) -> PolicyTexts:
    given = {f"{key}.ksp": text for key, text in files.items()}
    return PolicyTexts(name, {**ROOMS, **given}, roots or tuple(given), shown=shown)


def of_file(text: str, settings: Settings | None = None) -> Policy:
    return assemble(texts(policy=text), settings or Settings())


def legacy(policy: Mapping[str, object] | str, settings: Settings | None = None) -> Policy:
    text = policy if isinstance(policy, str) else json.dumps(policy)
    return assemble(PolicyTexts("p.json", {"p.json": text}, (), legacy="p.json"), settings or Settings())


def config(text: str = "", version: str = V1BETA1, **settings: object) -> Settings:
    configuration = read_configuration(version + text, "c.yaml")
    return Settings(configuration=configuration, **settings)  # type: ignore[arg-type]


def own(name: str) -> str:
    return ONLY_OWN.replace("NAME", name)


def names(policy: Policy) -> list[str]:
    return [profile.scheduler_name for profile in policy.profiles]


def percentages(policy: Policy) -> list[int]:
    return [profile.percentage for profile in policy.profiles]


def refused(given: PolicyTexts, settings: Settings | None = None) -> PolicyError:
    with pytest.raises(PolicyError) as error:
        assemble(given, settings or Settings())
    return error.value


def default(settings: Settings | None = None) -> Policy:
    return assemble(PolicyTexts(DEFAULT, {}, (DEFAULT,)), settings or Settings())


# ---- profiles


def test_without_settings_it_is_the_default_scheduler() -> None:
    policy = default()
    assert (policy.name, names(policy), percentages(policy)) == (DEFAULT, ["default-scheduler"], [100])
    assert (policy.warnings, policy.notes, policy.extenders) == ((), (), ())


@pytest.mark.parametrize(
    ("provider", "root"),
    [("DefaultProvider", DEFAULT), ("ClusterAutoscalerProvider", "ksp:cluster-autoscaler.ksp")],
)
def test_kube_schedulers_providers(provider: str, root: str) -> None:
    settings = Settings(provider=provider, scheduler_name="mine", percentage=0)
    policy = assemble(PolicyTexts(root, {}, (root,)), settings)
    assert (policy.name, names(policy), percentages(policy)) == (provider, ["mine"], [0])
    packs = any(active.name == "MostRequestedPriority" for active in policy.profiles[0].priorities)
    assert packs == (provider == "ClusterAutoscalerProvider")


def test_a_single_profile_takes_the_name_of_the_flag() -> None:
    assert names(of_file(IMPORT + 'profile "a" uses Both { }\n', Settings("mine"))) == ["mine"]


def test_several_profiles_cannot_take_one_name() -> None:
    text = IMPORT + 'profile "a" uses Both { }\nprofile "b" uses Both { }\n'
    assert names(of_file(text)) == ["a", "b"]
    error = refused(texts("policy.ksp", policy=text), Settings("x"))
    assert error.messages == ("mine declares several profiles (a, b): --scheduler-name would rename all of them",)


def test_a_file_with_one_provider_and_no_profile_means_that_one() -> None:
    text = IMPORT + "provider Mine extends Both { }\n"
    assert names(of_file(text)) == ["default-scheduler"]
    assert names(of_file(text, Settings("mine"))) == ["mine"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (IMPORT, "no provider"),
        (IMPORT + "provider A extends Both { }\nprovider B extends Both { }\n", "the providers A, B"),
    ],
)
def test_without_a_profile_it_must_be_clear_what_is_meant(text: str, said: str) -> None:
    (message,) = refused(texts("policy.ksp", policy=text)).messages
    assert said in message
    assert 'add profile "default-scheduler" uses PROVIDER { }' in message


# ---- folders, and the keys of a ConfigMap


def test_of_several_files_all_profiles_count_and_one_that_several_import_is_one() -> None:
    imported = 'import "a.ksp"\n'
    given = texts("a.ksp", "b.ksp", "c.ksp", a=IMPORT + 'profile "a" uses Both { }\n', b=imported,
                  c=imported + 'profile "c" uses Both { }\n')  # fmt: skip
    assert sorted(names(assemble(given, Settings()))) == ["a", "c"]


def test_who_imports_a_profile_may_replace_it() -> None:
    mine = 'import "a.ksp"\nprofile "a" uses Both { percentageOfNodesToScore = 5 }\n'
    given = texts("a.ksp", "mine.ksp", a=IMPORT + 'profile "a" uses Both { }\n', mine=mine)
    assert [(each.scheduler_name, each.percentage) for each in assemble(given, Settings()).profiles] == [("a", 5)]


def test_two_profiles_of_one_name_are_an_error_with_both_places() -> None:
    text = IMPORT + 'profile "x" uses Both { }\n'
    error = refused(texts("a.ksp", "b.ksp", shown="/etc/ksp", a=text, b=text))
    assert error.messages == ('the profile "x" is declared twice: /etc/ksp/a.ksp:2 and /etc/ksp/b.ksp:2',)


def test_profiles_of_tests_do_not_count_but_their_mistakes_do() -> None:
    policy = IMPORT + 'profile "a" uses Both { }\n'
    files = {**ROOMS, "a.ksp": policy, "a.test.ksp": 'import "a.ksp"\nprofile "only-tested" uses Both { }\n'}
    assert names(assemble(PolicyTexts("mine", files, ("a.ksp",)), Settings())) == ["a"]
    error = refused(PolicyTexts("mine", files | {"a.test.ksp": 'import "b.ksp"\n'}, ("a.ksp",)))
    assert [found.code for found in error.diagnostics] == ["KSP0501"]


def test_what_check_warns_of_comes_with_the_rules_but_not_of_tests() -> None:
    unused = 'predicate Spare {\n  deny "x" when node.name == "a"\n}\n'
    policy = IMPORT + unused + 'profile "a" uses Both { }\n'
    files = {**ROOMS, "a.ksp": policy, "a.test.ksp": IMPORT + unused}
    (found,) = assemble(PolicyTexts("mine", files, ("a.ksp",), shown="/p"), Settings()).warnings
    assert (found.code, found.message) == ("KSP0705", "the predicate `Spare` is in no provider")
    assert found.span.source.name == "/p/a.ksp"


def test_all_mistakes_of_all_files_are_told_and_nothing_that_follows_from_them() -> None:
    wrong = 'predicate P { deny "x" when nod.name == "" }\n'
    error = refused(texts("a.ksp", "b.ksp", a=wrong, b=wrong))
    assert [(found.code, found.span.source.name) for found in error.diagnostics] == [
        ("KSP0202", "a.ksp"),
        ("KSP0202", "b.ksp"),
    ]
    assert error.messages == ()
    assert "a.ksp:1: KSP0202" in str(error)
    assert error.rendered().count("error[KSP0202]") == 2


@pytest.mark.parametrize(("roots", "said"), [((), "there is no policy"), (("other.ksp",), "there is no such file")])
def test_texts_without_a_policy(roots: Sequence[str], said: str) -> None:
    (found,) = refused(PolicyTexts("mine", {}, tuple(roots))).diagnostics
    assert said in found.message


def test_the_hash_is_of_the_texts_with_what_they_import_wherever_they_lie() -> None:
    text = IMPORT + 'profile "a" uses Both { }\n'
    one, other = (assemble(texts("p.ksp", shown=shown, p=text), Settings()).sha256 for shown in ("/a", "/b"))
    assert one == other
    changed = PolicyTexts("mine", {**ROOMS, "p.ksp": text, "lib/room.ksp": LIBRARY + "// x\n"}, ("p.ksp",))
    assert assemble(changed, Settings()).sha256 != one


# ---- a legacy Policy


def test_a_policy_of_kube_scheduler() -> None:
    policy = legacy(LEGACY, Settings("mine"))
    assert names(policy) == ["mine"]
    plugins = [active.plugin for active in policy.profiles[0].predicates]
    assert "NodeName" in plugins
    assert "NodeResourcesFit" not in plugins
    assert len(policy.sha256) == 64


def test_all_mistakes_of_a_policy_are_told() -> None:
    wrong = {**LEGACY, "predicates": [{"name": "Nonsense"}, {"name": "Others"}]}
    messages = refused(PolicyTexts("p.json", {"p.json": json.dumps(wrong)}, (), legacy="p.json")).messages
    assert len(messages) == 2
    assert "/predicates/0" in messages[0]
    assert messages[0].startswith("p.json: ")


def test_a_policy_and_plugins_exclude_each_other_but_names_do_not() -> None:
    with pytest.raises(PolicyError) as error:
        legacy(LEGACY, config(own("x")))
    assert error.value.messages == (POLICY_AND_PLUGINS,)
    policy = legacy(LEGACY, config("profiles: [{schedulerName: theirs}]\npercentageOfNodesToScore: 30\n"))
    assert (names(policy), percentages(policy)) == (["theirs"], [30])


def test_mistakes_of_a_policy_are_told_beside_plugins() -> None:
    with pytest.raises(PolicyError) as error:
        legacy({**LEGACY, "predicates": [{"name": "Nonsense"}]}, config(own("x")))
    assert len(error.value.messages) == 2


def test_what_has_no_effect_on_a_policy_is_noted() -> None:
    assert "no effect" in legacy(LEGACY, Settings(hard_pod_affinity_weight=5)).notes[-1]
    extender = "extenders: [{urlPrefix: 'http://x', filterVerb: f}]\n"
    policy = legacy(LEGACY, config(extender))
    assert policy.extenders == ()
    assert "the extenders of --config do not count" in policy.notes[-1]


# ---- --config


def test_plugins_are_the_rules_that_implement_them_in_the_policy() -> None:
    policy = of_file(OWN, config(own("x")))
    (profile,) = policy.profiles
    assert (profile.scheduler_name, [active.name for active in profile.predicates]) == ("x", ["Own"])
    assert [(active.name, active.weight) for active in profile.priorities] == [("Weighs", 3)]
    assert policy.effective is not None


def test_plugins_that_the_policy_does_not_have_are_rules_that_ship() -> None:
    profiles = "profiles:\n- schedulerName: x\n  plugins: {multiPoint: {enabled: [{name: Mine}]}}\n"
    rules = 'predicate Mine { deny "no" when node.name == "a" }\n' + OWN
    policy = of_file(rules, config(profiles, V1BETA1.replace("v1beta1", "v1")))
    (profile,) = policy.profiles
    predicates = {active.plugin: active.name for active in profile.predicates}
    assert (predicates["Mine"], predicates["NodeName"]) == ("Mine", "Own")
    assert predicates["TaintToleration"] == "PodToleratesNodeTaints"
    priorities = {active.plugin: active.name for active in profile.priorities}
    assert (priorities["ImageLocality"], priorities["NodeResourcesFit"]) == ("Weighs", "NodeResourcesFitPriority")


def test_profiles_of_the_file_and_of_the_policy_stand_beside_each_other() -> None:
    both = OWN + IMPORT + 'profile "declared" uses Both { }\n'
    assert names(of_file(both, config(own("configured")))) == ["declared", "configured"]


def test_one_name_in_both_is_an_error_with_the_place() -> None:
    text = OWN + IMPORT + 'profile "same" uses Both { }\n'
    error = refused(texts("policy.ksp", policy=text), config(own("same")))
    assert error.messages == (
        'the profile "same" is in the file of --config and in policy.ksp:4: only one may name it',
    )


def test_profiles_of_the_shipped_library_do_not_count_beside_the_file() -> None:
    text = 'import "ksp:default.ksp"\n' + OWN.replace("NodeName", "Mine")
    profiles = own("default-scheduler").replace("NodeName", "Mine")
    assert names(of_file(text, config(profiles))) == ["default-scheduler"]


def test_a_file_without_profiles_takes_those_of_the_policy() -> None:
    assert names(of_file(IMPORT + 'profile "a" uses Both { }\n', config())) == ["a"]


def test_a_file_without_profiles_and_no_policy_is_the_default_of_its_version() -> None:
    settings = config("percentageOfNodesToScore: 20\n", scheduler_name="mine")
    assert settings.configuration is not None
    root = settings.configuration.rules
    policy = assemble(PolicyTexts(root, {}, (root,)), settings)
    assert (names(policy), percentages(policy)) == (["mine"], [20])
    assert policy.profiles[0].predicates[0].plugin == "NodeUnschedulable"


def test_plugins_without_a_rule_are_errors_of_the_file() -> None:
    error = refused(texts("policy.ksp", policy=OWN), config(own("x").replace("name: NodeName", "name: NodeNam")))
    (message,) = error.messages
    assert message.startswith("c.yaml:")
    assert "did you mean `NodeName`?" in message


def test_of_several_files_those_that_import_come_first_and_the_library_last() -> None:
    base = 'import "ksp:nodes.ksp"\n' + OWN
    derived = 'import "base.ksp"\npredicate Better implements NodeName { deny "no" when node.name == "b" }\n'
    given = texts("base.ksp", "derived.ksp", base=base, derived=derived)
    (profile,) = assemble(given, config(own("x"))).profiles
    assert [active.name for active in profile.predicates] == ["Better"]


def test_rules_of_two_files_for_one_plugin_are_an_error_unless_one_imports_the_other() -> None:
    other = 'predicate Another implements NodeName { deny "no" when node.name == "b" }\n'
    error = refused(texts("a.ksp", "b.ksp", a=OWN, b=other), config(own("x")))
    assert error.messages == (
        "two rules implement `NodeName`, at a.ksp:1 and b.ksp:1, and neither file imports the other",
    )
    unused = other.replace("NodeName", "Mine")
    assert names(assemble(texts("a.ksp", "b.ksp", a=OWN, b=unused + unused.replace("Another", "Third")),
                          config(own("x")))) == ["x"]  # fmt: skip


def test_extenders_of_the_file_and_what_they_ignore() -> None:
    extender = "{urlPrefix: 'http://x', filterVerb: f, managedResources: [{name: e.com/a, ignoredByScheduler: true}]}"
    rule = """\
predicate Fits implements NodeResourcesFit {
  param ignoredResources: list<string> = []
  deny "x" when size(ignoredResources) == 0
}
provider P { predicates { Fits } }
profile "p" uses P { }
"""
    policy = of_file(rule, config(f"extenders: [{extender}]\n"))
    assert [each.url_prefix for each in policy.extenders] == ["http://x"]
    assert policy.profiles[0].predicates[0].arguments == {"ignoredResources": ("e.com/a",)}


# ---- percentages and weights


@pytest.mark.parametrize(
    ("declared", "file", "flag", "percentage"),
    [
        ("", "", None, 100),
        ("", "percentageOfNodesToScore: 30\n", None, 30),
        ("percentageOfNodesToScore = 20", "percentageOfNodesToScore: 30\n", None, 20),
        ("percentageOfNodesToScore = 20", "percentageOfNodesToScore: 30\n", 10, 10),
    ],
)
def test_the_percentage_of_the_flag_then_the_profile_then_the_file_then_100(
    declared: str, file: str, flag: int | None, percentage: int
) -> None:
    text = IMPORT + f'profile "a" uses Both {{ {declared} }}\n'
    assert percentages(of_file(text, config(file, percentage=flag))) == [percentage]


def test_the_percentage_of_a_shipped_profile_gives_way_to_the_file() -> None:
    assert percentages(default(config("percentageOfNodesToScore: 30\n"))) == [30]
    assert percentages(default()) == [100]


@pytest.mark.parametrize(("declared", "weight"), [("", 7), ("Affine.hardPodAffinityWeight = 3", 3)])
def test_the_weight_of_the_flag_counts_where_the_policy_does_not_say(declared: str, weight: int) -> None:
    text = f"""\
predicate Affine implements InterPodAffinity {{
  param hardPodAffinityWeight: int = 1
  deny "x" when hardPodAffinityWeight < 0
}}
provider P {{ predicates {{ Affine }} }}
profile "p" uses P {{ {declared} }}
"""
    policy = of_file(text, Settings(hard_pod_affinity_weight=7))
    assert policy.profiles[0].predicates[0].arguments == {"hardPodAffinityWeight": weight}


@pytest.mark.parametrize("profile", ['profile "p" uses P { }\n', ""])
def test_a_weight_that_the_rule_cannot_take_is_an_error_of_the_profile(profile: str) -> None:
    rule = """\
predicate Affine implements InterPodAffinity {
  param hardPodAffinityWeight: string = ""
  deny "x" when hardPodAffinityWeight == "y"
}
provider P { predicates { Affine } }
"""
    (message,) = refused(texts("policy.ksp", policy=rule + profile), Settings(hard_pod_affinity_weight=7)).messages
    assert message.startswith(f'the profile "{"p" if profile else "default-scheduler"}": InterPodAffinity.hardPod')


def test_how_long_volumes_are_waited_for_is_not_negative() -> None:
    rule = """\
predicate Own implements VolumeBinding {
  param bindTimeoutSeconds: int = VALUE
  deny "x" when bindTimeoutSeconds < 0
}
provider P { predicates { Own } }
profile "a" uses P {}
"""
    assert of_file(rule.replace("VALUE", "0")).profiles[0].bind_timeout == 0
    (found,) = refused(texts("policy.ksp", policy=rule.replace("VALUE", "-1"))).diagnostics
    assert found.code == "KSP0511"


# ---- memory


def of_generation(number: int) -> PolicyTexts:
    text = (
        f'import "ksp:spread.ksp"\npredicate R{number} implements R{number} {{\n  deny "no" when node.name == ""\n}}\n'
    )
    profile = (
        f'provider P {{ predicates {{ R{number}, EvenPodsSpread }} priorities {{ }} }}\nprofile "x" uses P {{ }}\n'
    )
    return PolicyTexts("x", {"a.ksp": text + profile}, ("a.ksp",))


def test_what_was_needed_on_the_way_leaves_next_to_nothing_to_the_garbage_collector() -> None:
    """It would stop the scheduler for a tenth of a second after each reload: there were tens of thousands."""
    assemble(of_generation(0), Settings())
    gc.collect()
    gc.disable()
    try:
        assemble(of_generation(1), Settings())
        assert gc.collect() < 1_000
    finally:
        gc.enable()


def test_nothing_is_kept_of_policies_that_have_gone() -> None:
    def alive() -> int:
        gc.collect()
        return sum(isinstance(each, Binding) for each in gc.get_objects())

    assemble(of_generation(0), Settings())
    before = alive()
    for number in range(1, 4):
        assemble(of_generation(number), Settings())
    assert alive() <= before + 10
