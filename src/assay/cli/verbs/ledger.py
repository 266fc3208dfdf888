"""`assay ledger`: verifies the ledger, seals it in places outside of it, copies and upgrades it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from assay.cli.context_line import print_answer
from assay.cli.operator_orders import Who, find_operator_name
from assay.cli.options import FleetDir, OutputFormat, option
from assay.cli.verbs.ledger_copies import archive, backup, find_anchors, open_ledger_workspace, restore
from assay.model.errors import AssayError

ledger_app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Verify the ledger, seal it outside, and copy it."
)

ANCHOR_FORMS = "file:PATH, git-note[:REF] or rfc3161:URL[#ROOTS.pem]"
Anchors = Annotated[
    list[str],
    option(
        "--anchor ANCHOR",
        f"An anchor: {ANCHOR_FORMS}. May be repeated. Default: those of ledger-seal schedules, and those in use.",
        show_default=False,
    ),
]


ledger_app.command()(backup)
ledger_app.command()(restore)
ledger_app.command()(archive)


@ledger_app.command()
def verify(
    seal: Annotated[
        str,
        option("--seal SEAL", "Also compare with a seal that an earlier `verify` printed and that is kept elsewhere."),
    ] = "",
    anchor: Anchors = [],  # noqa: B006 — typer copies it
    archived: Annotated[
        list[Path],
        option(
            "--archive FILE",
            "An archive of this ledger that is not where it was written. May be repeated.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Verify the hash of every entry, run and outcome, and its link to the one before. Print the seal of the ledger.

    Then compare it with its archives, and with every seal that its anchors keep. Say up to where each proves it, and
    how much came after that. An archive that is not here proves nothing, and is named.

    Exit codes: 0 unchanged; 1 something was changed, removed, reordered or inserted, or an anchor is lost; 2 the
    ledger cannot be read, or is empty.
    """
    from assay.cli.verbs.ledger_copies import LedgerVerification, end_broken
    from assay.ledger.copies.archive import check_archives
    from assay.ledger.copies.seal import make_seal, parse_seal
    from assay.ledger.copies.sealing import check_anchor, find_contradictions, find_unsealed_removals
    from assay.ledger.errors import BrokenLedgerError

    workspace = open_ledger_workspace(fleet)
    given = parse_seal(seal) if seal else None
    try:
        ledger, (anchors, lost) = workspace.ledger_for_reading, find_anchors(workspace, anchor)
    except BrokenLedgerError as error:
        raise end_broken(error, "none of it can be read", form) from None
    reports = [check_anchor(ledger, known) for known in anchors]
    contradictions = find_contradictions(ledger, given) if given else []
    fitting = [report.proven.seal for report in reports if report.proven]
    fitting += [given] if given and not contradictions else []
    verification = LedgerVerification(
        chain_problems=tuple(ledger.verify()),
        seal_problems=(*contradictions, *find_unsealed_removals(ledger, fitting)),
        anchors=(*reports, *lost),
        ends=make_seal(ledger.chain_ends()),
        archives=tuple(check_archives(workspace.ledger_location, archived)),
    )
    print_answer(verification.to_json(), form, [verification.to_text()])
    raise typer.Exit(1 if verification.problems else 2 if verification.is_empty else 0)


@ledger_app.command()
def seal(
    anchor: Anchors = [],  # noqa: B006
    accept: Annotated[
        list[int],
        option(
            "--accept NUMBER",
            "A pruning or an archive that no seal covers, and that you made: the number of its entry.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    who: Who = "",
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Verify the ledger and keep its seal in anchors: places that whoever alters the ledger cannot alter as well.

    The seal covers every entry, run and outcome of now. A file or a git note belongs on another machine, so push the
    note. A time-stamp authority (RFC 3161) signs the seal with the time; its stamps are in `.assay/seals.jsonl`.

    Exit codes: 0 sealed in every anchor; 1 the ledger is broken, or not the one that an anchor knows; 2 an anchor
    could not be written.
    """
    from assay.cli.verbs.ledger_copies import LedgerSealAnswer, format_sealing
    from assay.ledger.copies.seal import make_seal
    from assay.ledger.copies.sealing import seal_ledger

    workspace = open_ledger_workspace(fleet)
    workspace.home.require_fleet("anchors are for the seals of a real ledger")
    anchors, lost = find_anchors(workspace, anchor)
    if lost:
        raise AssayError(lost[0].unreadable)
    if not anchors:
        raise AssayError("no anchor is given", fix=f"give --anchor: {ANCHOR_FORMS}")
    ledger, at = workspace.ledger_for_reading, workspace.clock.now().isoformat()
    problems = ledger.verify()
    person = find_operator_name(who)
    sealed = [] if problems else seal_ledger(ledger, anchors, workspace.seal_register, at, person, accept)
    ends = make_seal(ledger.chain_ends())
    answer = LedgerSealAnswer(str(ends), list(problems), sealed)
    print_answer(answer, form, [format_sealing(problems, sealed, ends)])
    is_broken = bool(problems) or any(result.is_contradicted for result in sealed)
    raise typer.Exit(1 if is_broken else 2 if any(result.refusal for result in sealed) else 0)


@ledger_app.command()
def upgrade(fleet: FleetDir = Path()) -> None:
    """Upgrade a ledger that an older assay wrote, so that this one can read all of it. Nothing of it is lost.

    It takes a moment, and every command that writes into the ledger does it too. The older assay then refuses the
    ledger: keep a copy if you want to go back.

    Exit codes: 0 the ledger has this version; 2 it cannot be upgraded.
    """
    from assay.ledger.errors import SCHEMA_VERSION

    workspace = open_ledger_workspace(fleet)
    workspace.ledger.close()
    typer.echo(f"the ledger has schema version {SCHEMA_VERSION}: {workspace.ledger_location}")
