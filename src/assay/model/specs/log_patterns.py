"""Patterns of kernel log messages, and XIDs in them, compiled to search a million lines fast.

A message is found by how it begins or by a word that it contains; only then is its regular expression applied. For
texts that break off within a match, such as `EDAC MC0: 1 U`, each expression has a second form. It leaves out what a
lookahead or a back reference asks for, so a text may be taken for a beginning too often.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from re import _constants as ops  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

from pydantic import Field, model_validator

from assay.model.specs.spec_document import StrictModel
from assay.model.specs.watched_lines import (
    LEAST_LETTERS,
    LiteralText,
    RegexText,
    WatchedLines,
    join_as_tree,
    join_patterns,
)

Item = tuple[Any, Any]
"""One node of a parsed expression: what it is, and its arguments."""
NOTHING = "(?!)"
MANY_LETTERS = 20
"""A text that says so much of a pattern is a beginning, whatever words follow."""
END = r"\Z"
CATEGORIES = {
    ops.CATEGORY_DIGIT: r"\d",
    ops.CATEGORY_NOT_DIGIT: r"\D",
    ops.CATEGORY_SPACE: r"\s",
    ops.CATEGORY_NOT_SPACE: r"\S",
    ops.CATEGORY_WORD: r"\w",
    ops.CATEGORY_NOT_WORD: r"\W",
}
PLACES = {ops.AT_BOUNDARY: r"\b", ops.AT_NON_BOUNDARY: r"\B"}
REPEATS = {ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT}
SAYS_BEGINNING = {ops.LITERAL, ops.SUBPATTERN, ops.BRANCH}
LEFT_OUT = {ops.ASSERT, ops.ASSERT_NOT, ops.GROUPREF}


def compile_beginning(pattern: str, letters: int | None = 0) -> re.Pattern[str]:
    """Return an expression that matches, from their start, texts that end before a match of `pattern` is complete.

    Where any words may stand (`.*`, and before a pattern that may match anywhere), most texts are whole: a text that
    ends after such words is a beginning if so many letters of what follows are there, or fewer of them as a word of
    their own, or if much of the pattern stands before; with None it never is.
    """
    items = list(parser.parse(pattern))
    begun = _begin(items, letters) if _is_anchored(items) else _begin_after_words(".*", items, letters)
    return re.compile(begun, re.IGNORECASE | re.DOTALL)


def find_search_words(pattern: str, heads: Iterable[str]) -> dict[str, list[str]]:
    """Return how logs are searched for messages that match `pattern`: by `begins` or `holds` of a KernelLogPattern.

    A pattern that says how its messages begin is found by that, or by the heads that they may have. One that begins
    with any word, such as that of any driver, is found by the longest text that it asks for.
    """
    items = list(parser.parse(pattern))
    letters = "".join(chr(value) if kind is ops.LITERAL else "\n" for kind, value in _flatten(items))
    if _is_anchored(items) and len(begun := letters[1:].partition("\n")[0]) >= LEAST_LETTERS:
        return {"begins": [begun]}
    if _is_anchored(items) and items[1:2] and items[1][0] in SAYS_BEGINNING:
        beginning = compile_beginning(pattern)
        return {"begins": [head for head in heads if beginning.fullmatch(head.replace(NUMBER, "0"))]}
    return {"holds": [max(letters.split("\n"), key=len)]}


def _flatten(items: Iterable[Item]) -> Iterator[Item]:
    for kind, value in items:
        yield from _flatten(value[-1]) if kind is ops.SUBPATTERN else [(kind, value)]


def _is_anchored(items: Sequence[Item]) -> bool:
    if not items:
        return False
    kind, value = items[0]
    if kind is ops.BRANCH:
        return all(_is_anchored(list(branch)) for branch in value[1])
    return kind is ops.AT and value is ops.AT_BEGINNING


def _begin(items: Sequence[Item], letters: int | None, letters_before: int = 0) -> str:
    """Return an expression for texts that end within these items. `told` letters stand before them."""
    if not items:
        return NOTHING
    (kind, value), rest = items[0], items[1:]
    if kind is ops.BRANCH:
        return _join(_begin([*branch, *rest], letters, letters_before) for branch in value[1])
    if kind is ops.SUBPATTERN:
        return _begin([*value[-1], *rest], letters, letters_before)
    if kind in LEFT_OUT or (kind is ops.AT and value not in PLACES):
        return _begin(rest, letters, letters_before)
    if kind in REPEATS:
        return _begin_repeat(value, rest, letters, letters_before)
    return _join((END, _whole([items[0]]) + _begin(rest, letters, letters_before + (kind is ops.LITERAL))))


def _begin_repeat(
    value: tuple[int, Any, Iterable[Item]], rest: Sequence[Item], letters: int | None, letters_before: int
) -> str:
    least, most, inner = value[0], "" if value[1] is ops.MAXREPEAT else value[1], list(value[2])
    item = f"(?:{_whole(inner)})"
    # `.` or `[^:]`: it may be a blank, so any words may stand there
    may_be_blank = len(inner) == 1 and inner[0][0] is not ops.LITERAL and re.fullmatch(_whole(inner), " ")
    if may_be_blank and not most:
        needed = 0 if letters and letters_before >= MANY_LETTERS else letters
        return _begin_after_words(f"{item}{{{least},}}", rest, needed)
    before = most - 1 if isinstance(most, int) else most
    ways = (
        f"{item}{{0,{before}}}{_begin(inner, letters, letters_before)}",
        f"{item}{{{least},{most}}}{_begin(rest, letters, letters_before)}",
    )
    return _join(ways)


def _begin_after_words(words: str, rest: Sequence[Item], letters: int | None) -> str:
    if letters is None:
        return END
    starts = rf"(?:(?=.{{{letters}}})|(?<!\w)(?=.))" if letters else ""
    return _join((END, f"{words}{starts}{_begin(rest, letters)}", *([] if letters else [words + END])))


def _join(ways: Iterable[str]) -> str:
    return f"(?:{'|'.join(ways)})"


def _whole(items: Iterable[Item]) -> str:
    return "".join(_whole_item(kind, value) for kind, value in items)


def _whole_item(kind: Any, value: Any) -> str:
    if kind is ops.LITERAL:
        return re.escape(chr(value))
    if kind is ops.NOT_LITERAL:
        return f"[^{re.escape(chr(value))}]"
    if kind is ops.ANY:
        return "."
    if kind is ops.IN:
        return f"[{''.join(_in_set(*member) for member in value)}]"
    if kind is ops.BRANCH:
        return _join(map(_whole, value[1]))
    if kind is ops.SUBPATTERN:
        return f"(?:{_whole(value[-1])})"
    if kind in REPEATS:
        most = "" if value[1] is ops.MAXREPEAT else value[1]
        return f"(?:{_whole(value[2])}){{{value[0]},{most}}}"
    return PLACES.get(value, "") if kind is ops.AT else ""


def _in_set(kind: Any, value: Any) -> str:
    if kind is ops.NEGATE:
        return "^"
    if kind is ops.RANGE:
        return f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}"
    return CATEGORIES[value] if kind is ops.CATEGORY else re.escape(chr(value))


class KernelLogPattern(StrictModel):
    """Messages that match the regular expression `pattern`. Its groups `pci` or `part` name the affected part.

    Where the part stands at several places of the pattern, the further groups are `part2`, `part3` and so on. The group
    `count` is how many errors such a message tells of, if not one.

    Every such message must begin with one of `begins`, or contain one of `holds`: logs are searched for these first.
    `<number>` in `begins` stands for any number. Without either, every line is matched, which is correct and slow.
    """

    pattern: RegexText
    begins: list[LiteralText] = Field(default=[])
    holds: list[LiteralText] = Field(default=[])

    @model_validator(mode="after")
    def _begins_or_holds(self) -> KernelLogPattern:
        if self.begins and self.holds:
            raise ValueError("give begins or holds, not both: a line is searched for in one way")
        return self


XID_PREFIX = "NVRM: Xid"
ERROR = "\1"
"""Stands for the rest of a message in which a word stands that only an error has."""
NUMBER = "<number>"
"""Stands for a number of any length in the beginning of a message."""
SXID_HEADS = tuple(
    f"{name}{NUMBER}: {word}"
    for name, word in (("nvidia-nvswitch", "SXid"), ("nvidia-nvswitch", "sxid"), ("NVIDIA-NVSWITCH", "SXID"))
)
_XID_WORD = re.compile(r"(?i)xid(?: +\(|=\d)")
_XID_ANNOUNCED = re.compile(r"(?i)NVRM: +Xid|: +SXid")
_XID_NUMBER = re.compile(
    r"(?<!\w)(?:Xid|xid|XID) +\((?:PCI:|pci:)?(?P<gpu>[0-9a-fA-F:.]+)(?: [^)]*)?\): +(?P<xid>\d{1,6})\b"
    r"|(?:SXid|sxid|SXID) +\((?:PCI:|pci:)?(?P<switch>[0-9a-fA-F:.]+)\): +(?P<sxid>\d{1,6})\b"
    r"(?P<mild>, (?i:Non-fatal|Severity|Data)\b)?"
    r"|(?<!\w)Xid=(?P<quoted>\d{1,6})(?: on Device=(?P<device>[\w/-]+)|, All devices\b)"
)
"""An XID as the driver writes it, or as Kubernetes' device plugin quotes it."""
_CAUSE = re.compile(r"caused by previous Xid (\d{1,6})")
"""By this an XID says that it only follows from another one, whose line may be missing."""
_XID_HEAD, _SXID_HEAD = "NVRM: Xid", r"nvidia-nvswitch\d+: SXid"
_XID_START, _SXID_START = rf"^{_XID_HEAD} \([^)]*\): \d", rf"^{_SXID_HEAD} \([^)]*\): \d"
_LAST_NUMBER = re.compile(r"(?P<switch>S)?Xid +\([^)]*\): +(?P<number>\d{1,6})$")
MOST_AFTER_ADDRESS = 20
"""The letters in which a number that ends a message stands, with the quotes around the message."""
_CONVERSION = re.compile(r"(?:0x)?%(?:0?\d{1,2})?(?:hh?|ll?|z)?[cdiusxX](?![a-z])")
_QUOTES = " \t\r\n\"'`|*>\\"
KNOWN_TEXTS, LONGEST_KNOWN = 256, 512
"""So many messages, none longer, have their faults remembered: a storm says the same again and again."""
DIGITS = bytes.maketrans(b"123456789", b"000000000")
"""Makes one form of all lines that differ in their digits alone."""
_DIGITS = str.maketrans("123456789", "000000000")
_PATTERN_DIGITS = re.compile(r"\\.|\{[\d,]+\}|\(\?P[<=]\w+|[1-9]")
_REFUSED_DIGITS = re.compile(r"\\x|\(\?<?![^)]*\d|\[\^[^\]]*(?<!0-)\d(?!-9)")
UNKNOWN_XID = "gpu.xid.unknown"
UNKNOWN_SXID = "nvswitch.sxid.unknown"
UNKNOWN_FATAL_SXID = "nvswitch.sxid.unknown.fatal"
"""These three are the classes of numbers that no catalogue has."""


class RecoveryAction(StrictModel):
    """The words by which an XID itself says what the GPU needs. They override what earlier XIDs of that GPU ask for.

    `xid`: its number. `text`: the words, as a regular expression. `overrides_seconds`: how long before it an XID may
    have been seen that it overrides.
    """

    xid: int
    text: RegexText
    overrides_seconds: float = Field(default=300, gt=0)


LEAST_AFTER_WORDS = 3
"""Letters of what follows words that vary, in a message that breaks off: most lines that end there are whole."""


class FaultMention(NamedTuple):
    """A fault that a message names, and where: at a PCI address, or on a named part; "" if not given.

    `errors`: how many the message itself tells of.
    """

    name: str
    pci: str = ""
    part: str = ""
    errors: int = 1


class KernelLogMatcher:
    """The kernel log patterns of a catalogue, compiled. Logs are searched for `begins` and `holds` first.

    `patterns` belong to classes without `begins` and `holds` and must be matched with every line. `numbers` are the
    XIDs and SXIDs that have a class, by name; with none, every number has its own. `recovery_actions` are the classes
    that the text of an XID decides. Errors of `watched` that no class has are not judged, but for `noise`.
    """

    def __init__(
        self,
        lines: Sequence[tuple[str, KernelLogPattern]],
        numbers: Collection[str] = (),
        recovery_actions: Mapping[str, RecoveryAction] | None = None,
        watched: WatchedLines | None = None,
        noise: Iterable[str] = (),
    ) -> None:
        self._lines, self._numbers = lines, frozenset(numbers)
        self._watched, self._noise = watched, join_patterns(noise)
        self._begun_numbers = {name[:end] for name in numbers for end in range(name.rfind(".") + 2, len(name))}
        self._known: dict[str, list[FaultMention]] = {}
        self._recovery_actions: dict[int, list[tuple[str, re.Pattern[str]]]] = {}
        for name, action in (recovery_actions or {}).items():
            self._recovery_actions.setdefault(action.xid, []).append((name, re.compile(action.text, re.IGNORECASE)))
        compiled = [(name, line, re.compile(line.pattern, re.IGNORECASE)) for name, line in lines]
        heads = {head for _, line, _ in compiled for head in line.begins}
        self._watched_only = watched.heads - heads if watched else frozenset()
        self._words = watched.words if watched else ""
        every = {XID_PREFIX, *heads, *self._watched_only}
        self.begins: tuple[str, ...] = tuple(sorted(every, key=lambda head: (-len(head), head)))
        words = {word for _, line, _ in compiled for word in line.holds}
        self.holds: tuple[str, ...] = tuple(sorted(words))
        self.patterns = tuple((name, regex) for name, line, regex in compiled if not (line.begins or line.holds))
        by_letter: dict[str, list[int]] = {}
        for place, head in enumerate(self.begins):
            by_letter.setdefault(head[0].lower(), []).append(place)
        each = [f"({re.escape(head)})".replace(NUMBER, r"\d+") for head in self.begins]
        self._heads = {
            letter: (re.compile("|".join(each[place] for place in places), re.IGNORECASE), places)
            for letter, places in by_letter.items()
        }
        self._subsystems = [watched.find_subsystem(head) for head in self.begins] if watched else []
        # An XID is told by its number: what begins as any line of the driver does is not.
        self._by_head = [
            [
                (name, regex)
                for name, line, regex in compiled
                if (XID_PREFIX in line.begins if head == XID_PREFIX else head.startswith(tuple(line.begins)))
            ]
            for head in self.begins
        ]
        self.prefix_regex = cache(self._make_prefix_regex)
        self._beginnings = cache(self._list_beginnings)
        self._cut_by_head = cache(
            lambda head: [compile_beginning(regex.pattern, None) for _, regex in self._by_head[head]]
        )
        self._by_word = [
            (word, [(name, regex) for name, line, regex in compiled if word in line.holds]) for word in self.holds
        ]

    def _find_head(self, text: str) -> int:
        """Return which of `begins` a message has, the longest of them; -1 for none."""
        joined, places = self._heads.get(text[:1].lower(), (None, []))
        match = joined.match(text) if joined else None
        return places[(match.lastindex or 0) - 1] if match else -1

    def _make_prefix_regex(self) -> str:
        """Return a regular expression for the beginnings of messages, also in lower case, as a tree for speed.

        A message of a subsystem that no class has must go on with a word that only an error has.
        """
        heads = {*self.begins, *SXID_HEADS} - self._watched_only | {head + ERROR for head in self._watched_only}
        both = heads | set(map(str.lower, heads))
        # what the first letters may be: most lines are left by these at once
        spelled = [head.replace(NUMBER, digits) for head in both for digits in ("0", "00")]
        sets = ("".join(sorted({re.escape(head[place]) for head in spelled})) for place in range(LEAST_LETTERS))
        first_letters = f"(?={''.join(f'[{letters}]' for letters in sets)})".replace("0", r"\d")
        tree = join_as_tree(both).replace(NUMBER, r"\d+")
        return first_letters + tree.replace(ERROR, rf"(?=(?:[a-zA-Z]*+[^a-zA-Z\n]++)*?{self._words})")

    def find_faults(self, text: str) -> Sequence[FaultMention]:
        """Return the faults that a message names. `text` is without time, host and level."""
        mentions = self._known.get(text)
        if mentions is None:
            mentions = self._match_faults(text)
            if len(self._known) >= KNOWN_TEXTS:
                self._known.clear()
            if len(text) <= LONGEST_KNOWN:
                self._known[text] = mentions
        return mentions

    def find_unjudged(self, text: str, level: int | None = None) -> str:
        """Return the subsystem whose error this is, if no class has it and it is no noise, else "".

        `level` is the kernel's, None if the log does not say.
        """
        if self._watched is None or self.find_faults(text) or not self._watched.is_error(text, level):
            return ""
        head = self._find_head(text)
        return "" if head < 0 or self._noise.search(text) else self._subsystems[head]

    def says_nothing(self, text: str) -> bool:
        """Whether a message names no fault, begins none, is no error, and would not with any other digits either."""
        low = text.lower()
        place, folded = self._find_head(text), low.translate(_DIGITS)
        if (
            place < 0
            or "%" in text
            or "xid" in low
            or low.startswith("nvrm")
            or self.patterns
            or self.find_faults(text)
        ):
            return False
        others = (head.lower().translate(_DIGITS) for head in self.begins if not low.startswith(head.lower()))
        if any(folded.startswith(head) or head.startswith(folded) for head in others):
            return False
        if any(word.lower().translate(_DIGITS) in folded for word in self.holds):
            return False
        may_say = (fold_pattern(regex.pattern) for _, regex in self._by_head[place])
        is_error = self._watched is not None and self._watched.is_error(text, None)
        return not is_error and not any(whole.search(folded) or begun.match(folded) for whole, begun in may_say)

    def is_cut(self, text: str) -> bool:
        """Whether a message ends with an XID or SXID with which a longer known one begins: `…: 7` may be 79.

        The driver writes more after the number. A tool may have left that out, or the message breaks off.
        """
        number = _LAST_NUMBER.search(text.rstrip(_QUOTES)) if "): " in text[-MOST_AFTER_ADDRESS:] else None
        if number is None:
            return False
        return f"{'nvswitch.sxid.' if number['switch'] else 'gpu.xid.'}{number['number']}" in self._begun_numbers

    def may_begin_fault(self, text: str, letters: int = 0) -> bool:
        """Whether a message may be the beginning of one that names a fault: `Kernel panic - not sy`.

        `letters`: where any words may stand in that message, so many letters of what follows them must be there.
        """
        if len(text) < LEAST_LETTERS or self.find_faults(text):
            return False
        return any(
            part.match(text) or (head.match(text) and rest.match(text))
            for part, head, rest in self._beginnings(letters)
        )

    def breaks_off(self, text: str) -> bool:
        """Whether a message has the head of a fault's, and ends too early, where no words vary: `EDAC MC0: 1 U`."""
        head = self._find_head(text)
        return head >= 0 and any(cut.match(text) for cut in self._cut_by_head(head))

    def _list_beginnings(self, letters: int) -> list[tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]]:
        """Of each head: what breaks off within it; the head; what breaks off within the whole pattern."""
        pairs = [(_XID_HEAD, _XID_START), (_SXID_HEAD, _SXID_START)]
        heads = [(re.escape(head), line.pattern) for _, line in self._lines for head in line.begins]
        pairs += [(head.replace(NUMBER, r"\d+"), pattern) for head, pattern in heads]
        return [
            (compile_beginning(f"^{head}"), re.compile(head, re.IGNORECASE), compile_beginning(pattern, letters))
            for head, pattern in pairs
        ]

    def _match_faults(self, text: str) -> list[FaultMention]:
        mentions = []
        xid = _XID_WORD.search(text)
        if xid and (number := _XID_NUMBER.search(text, max(0, xid.start() - 1))):
            mentions.append(self._xid_mention(number, text))
        head = self._find_head(text)
        classes = self._by_head[head] if head >= 0 else ()
        if classes:
            # conversions such as `%04x` stand where a message has its numbers: such a text is the source of a message
            plain, conversions = _CONVERSION.subn("", text) if "%" in text else (text, 0)
            if not conversions or any(map(str.isdigit, plain)):
                mentions += _class_mentions(classes, text)
        for word, classes in self._by_word:
            if word in text:
                mentions += _class_mentions(classes, text)
        mentions += _class_mentions(self.patterns, text)
        # several wordings of a class may fit one message
        return list({mention.name: mention for mention in reversed(mentions)}.values())[::-1]

    def _xid_mention(self, number: re.Match[str], text: str) -> FaultMention:
        gpu, xid, switch, sxid, mild, quoted, device = number.groups()
        cause = _CAUSE.search(text, number.end()) if xid else None
        if quoted or cause:
            named = int(cause[1] if cause else quoted)
            return FaultMention(self._name_number(f"gpu.xid.{named}", UNKNOWN_XID), gpu or "", device or "")
        if xid is None:
            unknown = UNKNOWN_SXID if mild else UNKNOWN_FATAL_SXID
            return FaultMention(self._name_number(f"nvswitch.sxid.{int(sxid)}", unknown), switch)
        for name, regex in self._recovery_actions.get(int(xid), ()):
            if regex.search(text, number.end()):
                return FaultMention(name, gpu)
        return FaultMention(self._name_number(f"gpu.xid.{int(xid)}", UNKNOWN_XID), gpu)

    def _name_number(self, name: str, unknown: str) -> str:
        return name if not self._numbers or name in self._numbers else unknown


@cache
def fold_pattern(pattern: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return expressions for what a pattern matches, and what begins such a text, if each digit is a zero.

    One that refuses certain digits becomes one that matches anything.
    """
    folded = _PATTERN_DIGITS.sub(lambda part: part[0] if len(part[0]) > 1 else "0", pattern)
    whole = "" if _REFUSED_DIGITS.search(pattern) else folded
    return re.compile(whole, re.IGNORECASE), compile_beginning(whole or pattern)


def is_truncated_xid(text: str) -> bool:
    """Whether a message announces an XID or SXID without its number."""
    return _XID_ANNOUNCED.search(text) is not None and _XID_NUMBER.search(text) is None


def _class_mentions(classes: Iterable[tuple[str, re.Pattern[str]]], text: str) -> list[FaultMention]:
    mentions = []
    for name, regex in classes:
        if match := regex.search(text):
            groups = match.groupdict()
            pci, part = (
                next((text for group, text in groups.items() if text and group.startswith(kind)), "")
                for kind in ("pci", "part")
            )
            mentions.append(FaultMention(name, pci, part, max(1, int(groups.get("count") or 1))))
    return mentions
