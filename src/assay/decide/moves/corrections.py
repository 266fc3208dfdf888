"""Proposes corrections: a node in service gets declared settings where it is, if policy, profile and setting let it.

Failed checks say which settings differ. What the policy does not correct asks people, and so does a setting that
differs again and again: another tool changes it too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta

from assay.decide.moves.excused_failures import drop_excused_outcomes
from assay.decide.moves.proposals import FOREIGN_CAUSE, Proposal, find_respected_cordon
from assay.decide.moves.remedy_ladder import find_last_reset
from assay.decide.state.correction_record import ENDINGS, SETTING_CAUSE, CorrectionRecord
from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.decide.state.node_state import NodeState
from assay.model.decision import CONFIGURE, CONFIGURE_IDLE, CORRECTION_REMEDIES, DecisionCause
from assay.model.facts import frozen
from assay.model.faults.fault_record import FaultRecord
from assay.model.outcome import RecordedOutcome
from assay.model.specs.management_profile import ManagementProfile
from assay.model.specs.node.declared_settings import SETTING_ROLES, CorrectionRules, SettingApplication, needs_idle_node
from assay.model.specs.policy_sections import FaultRule
from assay.model.timestamps import format_duration, format_minute, format_time, hours, parse_time

IDLE_ACTIONS = {"cordon", "uncordon"}
"""What a correction needs besides `configure` if the node must be idle."""


def find_allowed_correction(
    rules: CorrectionRules, profile: ManagementProfile, rule: FaultRule, settings: Sequence[str], differing: str
) -> SettingApplication:
    """Return when a node gets the settings that one check reads; `zap` if any of that is left to people.

    `rule` is the rule for the fault; `differing` says which entries differ: some of them need an idle node.
    """
    applications = {rules.find_application(setting) for setting in settings}
    if not settings or "zap" in applications:
        return "zap"
    idle = rule.timing == "pending" or "idle" in applications
    needs_idle = idle or any(needs_idle_node(setting, differing) for setting in settings)
    if not may_correct(profile, settings, needs_idle=needs_idle):
        return "zap"
    return "idle" if needs_idle else "at_once"


def may_correct(profile: ManagementProfile, settings: Iterable[str], *, needs_idle: bool) -> bool:
    """Whether a profile lets assay bring these settings to a node in service."""
    actions = {CONFIGURE, *(IDLE_ACTIONS if needs_idle else ())}
    of_host = any(SETTING_ROLES[setting].home != "bmc" for setting in settings)
    return profile.acts_on_faults and actions <= set(profile.actions) and (profile.host_settings or not of_host)


def find_open_correction(node_state: NodeState) -> CorrectionRecord | None:
    """Return the correction of this stay that has not ended, None if there is none.

    It has ended with its last effect, or if the node could not be cordoned for it.
    """
    last = node_state.corrections[-1] if node_state.corrections else None
    if last is None or last.stay_id != node_state.stay_id:
        return None
    effects = {action: node_state.find_effect(last.decision, action) for action in last.actions}
    standings = {action: effect.standing if effect else "" for action, effect in effects.items()}
    if standings[last.actions[-1]] in ENDINGS or standings.get("cordon") == "failed":
        return None
    return last


def list_of_settings(node_state: NodeState, settings: Iterable[str], since: str) -> list[CorrectionRecord]:
    """Return the corrections of any of these settings that began after `since` (ISO 8601), oldest first."""
    wanted = set(settings)
    return [
        correction
        for correction in node_state.corrections
        if correction.at > since and wanted & set(correction.settings)
    ]


@frozen
class MatchedFault:
    """An open fault of a node, and the rule of the policy that corrects settings because of it."""

    fault: FaultRecord
    name: str
    rule: FaultRule


@frozen
class WrongSettings:
    """A failed check that says that settings differ, and whether the node must be idle to get them."""

    recorded: RecordedOutcome
    settings: frozenset[str]
    needs_idle: bool
    matched: MatchedFault


def propose_corrections(
    snapshot: FleetSnapshot, view: NodeSnapshot, faults: Sequence[MatchedFault]
) -> Iterator[Proposal]:
    """Yield what people are asked, and at most one correction. Settings for a node that works come first."""
    if view.name in snapshot.rolling_nodes:
        return
    wrong: list[WrongSettings] = []
    for matched in faults:
        failed = _list_failures(snapshot, view, matched.fault)
        repairable = [
            mistake for recorded in failed if (mistake := _find_wrong_settings(snapshot, view, matched, recorded))
        ]
        if len(repairable) < len(failed) or not (
            failed or any(matched.fault.id in correction.faults for correction in view.node_state.corrections)
        ):
            yield _ask_people(view, matched, ())
        wrong += repairable
    correctable: list[WrongSettings] = []
    for mistake in wrong:
        if fight := find_fight(snapshot, view, mistake.settings):
            yield _ask_people(
                view, mistake.matched, (DecisionCause("repeated", ",".join(sorted(mistake.settings)), fight),)
            )
        else:
            correctable.append(mistake)
    if view.node_state.pending or view.node_state.move_request or find_open_correction(view.node_state):
        return
    due = [mistake for mistake in correctable if _is_due(view, mistake)]
    now = [mistake for mistake in due if not mistake.needs_idle] or due
    if now:
        yield _propose_correction(snapshot, view, now)


def find_fight(snapshot: FleetSnapshot, view: NodeSnapshot, settings: Iterable[str]) -> str:
    """Return that assay brought these settings as often as it may, and that they differ again; "" if it may go on."""
    rules, recent = snapshot.policy.corrections, _list_recent(snapshot, view, settings)
    if len(recent) < rules.times:
        return ""
    since, names = format_duration(snapshot.now - parse_time(recent[0].at)), ", ".join(sorted(settings))
    if any(correction.is_verified for correction in recent):
        text = (
            f"assay brought {names} {len(recent)} times in {since}, and it differs again: another tool changes it too"
        )
        return f"{text}. Find that tool, then call `assay certify {view.name}`"
    return (
        f"assay tried {len(recent)} times in {since} to bring {names}, and failed: `assay explain {view.name}` says why"
    )


def describe_fights(snapshot: FleetSnapshot, view: NodeSnapshot, fault: FaultRecord) -> list[str]:
    """Return what assay brought again and again because of an open fault, for the ticket about it."""
    checks = [recorded.outcome.check for recorded in _list_failures(snapshot, view, fault)]
    wrong = dict.fromkeys(snapshot.settings_of_checks.get(check, frozenset[str]()) for check in checks)
    return [fight for settings in wrong if (fight := find_fight(snapshot, view, settings))]


def is_correction(proposal: Proposal) -> bool:
    """Whether a proposal brings settings to a node where it is."""
    return proposal.remedy in CORRECTION_REMEDIES


def hold_back_correction(proposal: Proposal, obstacle: DecisionCause, blockers: tuple[str, ...] = ()) -> Proposal:
    """Return the record that a correction must wait, and why. There is one record per kind of reason."""
    keys = (*proposal.identity_keys, proposal.remedy, obstacle.kind, obstacle.id)
    blockers = blockers or (obstacle.text,)
    return replace(proposal, remedy="wait", causes=(obstacle, *proposal.causes), identity_keys=keys, blockers=blockers)


def _list_failures(snapshot: FleetSnapshot, view: NodeSnapshot, fault: FaultRecord) -> list[RecordedOutcome]:
    """Return the failed checks behind a fault that count in the node's state."""
    watched = set(snapshot.policy_state_of(view).watch)
    counting = drop_excused_outcomes(
        view.latest, view.node, snapshot.known_issues, snapshot.observing_checks, snapshot.now
    )
    return [
        recorded
        for recorded in counting
        if (recorded.outcome.verdict, recorded.outcome.fault, recorded.outcome.subject)
        == ("fail", fault.fault_class, fault.subject)
        and watched & set(recorded.outcome.phases)
    ]


def _find_wrong_settings(
    snapshot: FleetSnapshot, view: NodeSnapshot, matched: MatchedFault, recorded: RecordedOutcome
) -> WrongSettings | None:
    """Return what a failed check wants corrected; None if the policy or the profile leaves any of that to people."""
    settings = snapshot.settings_of_checks.get(recorded.outcome.check, frozenset[str]())
    rules, reason = snapshot.policy.corrections, recorded.outcome.reason
    allowed = find_allowed_correction(rules, view.profile, matched.rule, sorted(settings), reason)
    return None if allowed == "zap" else WrongSettings(recorded, settings, allowed == "idle", matched)


def _ask_people(view: NodeSnapshot, matched: MatchedFault, more: tuple[DecisionCause, ...]) -> Proposal:
    fault = matched.fault
    keys = (fault.id, fault.severity, *(cause.id for cause in more))
    detail = f": {fault.detail}" if fault.detail else ""
    causes = (*more, DecisionCause("fault", fault.id, f"{fault.fault_class} on {fault.subject}{detail}"))
    return Proposal(view.node_state.state, "record", f"faults.{matched.name}", matched.name, causes, keys, "ticket")


def _list_recent(snapshot: FleetSnapshot, view: NodeSnapshot, settings: Iterable[str]) -> list[CorrectionRecord]:
    """Return the corrections of these settings that count: within the window, and since a person certified the node."""
    start = snapshot.now - hours(snapshot.policy.corrections.window_hours)
    since = max(start, find_last_reset(view.node_state))
    return list_of_settings(view.node_state, settings, format_time(since))


def _is_due(view: NodeSnapshot, wrong: WrongSettings) -> bool:
    """Whether the evidence was read after the last correction of these settings had ended."""
    earlier = list_of_settings(view.node_state, wrong.settings, "")
    after_entry = wrong.recorded.outcome.basis.after_entry
    if not earlier:
        return True
    last = earlier[-1]
    if after_entry is not None and last.ended_seq:
        return after_entry >= last.ended_seq
    return parse_time(wrong.recorded.measured_at) > parse_time(last.ended_at)


def _propose_correction(snapshot: FleetSnapshot, view: NodeSnapshot, wrong: Sequence[WrongSettings]) -> Proposal:
    """Return the correction of these settings, or the record of what it waits for."""
    settings = {setting: mistake.recorded.outcome.reason for mistake in wrong for setting in sorted(mistake.settings)}
    faults, matched = {mistake.matched.fault.id: mistake.matched.fault for mistake in wrong}, wrong[0].matched
    proposal = Proposal(
        to=view.node_state.state,
        timing="record",
        policy_path=f"faults.{matched.name}",
        rule_name=matched.name,
        causes=(
            *(DecisionCause(SETTING_CAUSE, setting, f"{setting}: {reason}") for setting, reason in settings.items()),
            *(DecisionCause("fault", fault.id, f"{fault.fault_class} on {fault.subject}") for fault in faults.values()),
        ),
        identity_keys=(*faults, *settings, str(len(view.node_state.corrections))),
        remedy=CONFIGURE_IDLE if any(mistake.needs_idle for mistake in wrong) else CONFIGURE,
    )
    if obstacle := _find_obstacle(snapshot, view, proposal.remedy, settings):
        return hold_back_correction(proposal, obstacle, view.jobs or () if obstacle.kind == "jobs" else ())
    return proposal


def _find_obstacle(
    snapshot: FleetSnapshot, view: NodeSnapshot, remedy: str, settings: Iterable[str]
) -> DecisionCause | None:
    """Return what a correction waits for on its own node: a person, whoever closed the node, jobs, or a pause."""
    hold = view.node_state.hold
    if hold:
        return DecisionCause("person", hold.id, f"held by {hold.who}: {hold.reason}")
    if reason := find_respected_cordon(snapshot.policy, view.foreign_cordon):
        return DecisionCause(FOREIGN_CAUSE, reason, f"waits while others keep the node closed ({reason})")
    recent = _list_recent(snapshot, view, settings)
    if recent:
        wait = timedelta(seconds=snapshot.policy.corrections.backoff.wait_s(len(recent)))
        if snapshot.now < (due := parse_time(recent[-1].ended_at) + wait):
            at, until = format_minute(recent[-1].at), format_minute(format_time(due))
            return DecisionCause("pause", recent[-1].decision, f"brought at {at} already: assay waits until {until}")
    if remedy == CONFIGURE_IDLE and view.jobs != ():
        return DecisionCause("jobs", "idle", "waits until no job runs on the node")
    return None
