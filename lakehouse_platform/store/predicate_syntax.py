"""The grammar of predicates: text in, syntax tree out; nothing is known about columns or types yet.

One expression, with PostgreSQL's precedence, lowest first: OR, AND, NOT, IS, comparisons (never chained), IN BETWEEN
LIKE ILIKE, ||, + -, * / %, unary -, ::.

The parser is our own because its answer decides which rows are deleted, and user text must not choose how deep Python
recurses: sqlglot 30 takes 20 stack frames for each parenthesis (50 of them exhaust the stack), drops comments, and
accepts a trailing ";" and chained comparisons. This one takes four frames and refuses what it does not know.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from lakehouse_platform.errors import InvalidPredicateError
from lakehouse_platform.store.syntax import (
    BetweenSyntax,
    CallSyntax,
    CaseSyntax,
    CastSyntax,
    ConstantSyntax,
    InSyntax,
    LikeSyntax,
    NameSyntax,
    NumberSyntax,
    OperatorSyntax,
    Syntax,
    TestSyntax,
    TextSyntax,
)

MAX_TEXT = 64 * 1024  # the longest text accepted, in characters; an IN list of some 8 000 numbers
MAX_DEPTH = 100  # nested deeper than any person writes; about 500 Python frames with all passes

_TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<comment>--|/\*)
    |(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])
    |(?P<bytes>[xX]'(?:[0-9a-fA-F]{2})*')
    |(?P<text>'(?:[^']|'')*')
    |(?P<quoted>"(?:[^"]|"")+")
    |(?P<word>[^\W\d]\w*)
    |(?P<symbol><=|>=|<>|!=|::|\|\||[=<>+\-*/%(),.\[\]])""",
    re.VERBOSE,
)
_HINTS = {
    ";": "only one expression is accepted, without ';'",
    "?": "placeholders are not accepted: write the value itself",
    "$": "placeholders are not accepted: write the value itself",
    ":": "placeholders are not accepted: write the value itself",
    "@": "placeholders are not accepted: write the value itself",
    "`": 'write column names in double quotes: "name"',
    "'": "a text is not closed: add the missing ' (a quote inside a text is written twice)",
    '"': 'a quoted name is empty or not closed: add the missing "',
}
_RESERVED = frozenset(
    {
        *(
            "ALL",
            "AND",
            "ANY",
            "AS",
            "BETWEEN",
            "CASE",
            "CAST",
            "DISTINCT",
            "ELSE",
            "END",
            "ESCAPE",
            "EXISTS",
            "FALSE",
        ),
        *(
            "FROM",
            "ILIKE",
            "IN",
            "IS",
            "LIKE",
            "NOT",
            "NULL",
            "OR",
            "SELECT",
            "SIMILAR",
            "THEN",
            "TRUE",
            "UNION",
        ),
        *("WHEN", "WHERE", "WITH"),
    }
)
_COMPARISONS = frozenset({"=", "<>", "!=", "<", "<=", ">", ">="})
_MEMBERSHIPS = frozenset({"IN", "BETWEEN", "LIKE", "ILIKE"})
_NOT = 3
_SIGN = 10
_LEVELS = (
    {"OR": 1, "AND": 2, "IS": 4, "||": 7, "+": 8, "-": 8, "*": 9, "/": 9, "%": 9, "::": 11}
    | dict.fromkeys(_COMPARISONS, 5)
    | dict.fromkeys(_MEMBERSHIPS, 6)
)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int

    @property
    def word(self) -> str:
        """The token as a keyword or symbol; empty for values and quoted names."""
        return self.text.upper() if self.kind in ("word", "symbol", "end") else ""


def parse_syntax(text: str) -> Syntax:
    """Return the syntax tree of the whole text.

    Raises:
        InvalidPredicateError: The text is not exactly one expression; the message says where.
    """
    if not _is_text(text):
        raise InvalidPredicateError(f"An expression is a text, not {type(text).__name__}: {text!r}.")
    if len(text) > MAX_TEXT:
        raise InvalidPredicateError(
            f"The expression has {len(text)} characters; at most {MAX_TEXT} are accepted. "
            "Join with a table of the values instead of listing them.",
            length=len(text),
        )
    return _Parser(text).parse()


def _is_text(text: object) -> bool:
    return isinstance(text, str)


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._tokenize()
        self._next = 0
        self._nesting = 0

    def parse(self) -> Syntax:
        if self._peek().kind == "end":
            raise InvalidPredicateError('The expression is empty: write one such as "id = 1".')
        result = self._expression()
        if self._peek().kind != "end":
            self._unexpected("the expression was complete before it; join two conditions with AND or OR")
        return result

    # Tokens

    def _tokenize(self) -> list[_Token]:
        tokens: list[_Token] = []
        at = 0
        while at < len(self._text):
            match = _TOKEN.match(self._text, at)
            if match is None:
                letter = self._text[at]
                self._fail(at, f"unexpected {letter!r}", _HINTS.get(letter, "it has no meaning here"))
            if match.lastgroup == "comment":
                self._fail(at, "a comment", "comments are not accepted: remove it")
            if match.lastgroup != "space":
                tokens.append(_Token(str(match.lastgroup), match[0], at))
            at = match.end()
        return [*tokens, _Token("end", "", at)]

    def _peek(self, ahead: int = 0) -> _Token:
        return self._tokens[min(self._next + ahead, len(self._tokens) - 1)]

    def _take(self) -> _Token:
        token = self._peek()
        self._next += 1
        return token

    def _accept(self, *words: str) -> bool:
        if all(self._peek(index).word == word for index, word in enumerate(words)):
            self._next += len(words)
            return True
        return False

    def _expect(self, word: str) -> None:
        if not self._accept(word):
            self._unexpected(f"{word} is expected here")

    def _unexpected(self, advice: str) -> NoReturn:
        token = self._peek()
        what = "the text ends too early" if token.kind == "end" else f"unexpected {token.text[:40]!r}"
        self._fail(token.at, what, advice)

    def _fail(self, at: int, what: str, advice: str) -> NoReturn:
        message = f"At character {at + 1}: {what}; {advice}."
        raise InvalidPredicateError(message, text=self._text[:200], position=at + 1)

    def _level(self, at: int, *children: Syntax | None) -> int:
        depth = 1 + max((child.depth for child in children if child), default=0)
        if depth > MAX_DEPTH:
            self._too_deep(at)
        return depth

    def _too_deep(self, at: int) -> NoReturn:
        self._fail(at, f"nested deeper than {MAX_DEPTH} levels", "write it flatter, with IN (…) for example")

    # Operators

    def _expression(self, level: int = 0) -> Syntax:
        """Return the expression that begins here and binds at least as tightly as `level`."""
        self._nesting += 1
        if self._nesting > MAX_DEPTH:
            self._too_deep(self._peek().at)
        left = self._prefixed(level)
        while (found := self._infix_level()) > level:
            left = self._infix(left, found)
        self._nesting -= 1
        return left

    def _infix_level(self) -> int:
        word = self._peek().word
        if word == "NOT":
            return _LEVELS["IN"] if self._peek(1).word in _MEMBERSHIPS else 0
        return _LEVELS.get(word, 0)

    def _prefixed(self, level: int) -> Syntax:
        token = self._peek()
        if token.word == "NOT" and level >= _NOT:
            self._unexpected("put NOT and what it negates in parentheses")
        if token.word == "NOT":
            return self._signed("NOT", ("NOT",), _NOT)
        if token.word in ("-", "+"):
            return self._signed("NEGATE", ("-", "+"), _SIGN)
        return self._primary()

    def _signed(self, operator: str, words: tuple[str, ...], level: int) -> Syntax:
        """Fold a row of prefixes, so that `NOT NOT NOT …` is not deep."""
        at = self._peek().at
        negative = False
        while self._peek().word in words:
            negative ^= self._take().word != "+"
        item = self._expression(level)
        return OperatorSyntax(at, self._level(at, item), operator, (item,)) if negative else item

    def _infix(self, left: Syntax, level: int) -> Syntax:
        word = self._peek().word
        if word in ("AND", "OR"):
            return self._chain(left, word, level)
        if word in _MEMBERSHIPS or word == "NOT":
            return self._membership(left, negated=self._accept("NOT"))
        self._take()
        if word == "IS":
            return self._after_is(left, level)
        if word == "::":
            return CastSyntax(left.at, self._level(left.at, left), left, self._type_text())
        right = self._expression(level)
        if word in _COMPARISONS and self._peek().word in _COMPARISONS:
            self._unexpected("comparisons cannot be chained: write a < b AND b < c")
        operator = "<>" if word == "!=" else word
        return OperatorSyntax(left.at, self._level(left.at, left, right), operator, (left, right))

    def _chain(self, left: Syntax, word: str, level: int) -> Syntax:
        """AND and OR chains stay flat, so that a long list of conditions is not deep."""
        operands = [left]
        while self._accept(word):
            operands.append(self._expression(level))
        return OperatorSyntax(left.at, self._level(left.at, *operands), word, tuple(operands))

    def _after_is(self, item: Syntax, level: int) -> Syntax:
        negated = self._accept("NOT")
        if self._accept("DISTINCT", "FROM"):
            other = self._expression(level)
            operator = "IS NOT DISTINCT FROM" if negated else "IS DISTINCT FROM"
            return OperatorSyntax(item.at, self._level(item.at, item, other), operator, (item, other))
        for word, wanted in (("NULL", None), ("UNKNOWN", None), ("TRUE", True), ("FALSE", False)):
            if self._accept(word):
                return TestSyntax(item.at, self._level(item.at, item), item, wanted, negated)
        return self._unexpected("IS is followed by [NOT] NULL, TRUE, FALSE or DISTINCT FROM")

    def _membership(self, item: Syntax, *, negated: bool) -> Syntax:
        word = self._take().word
        if word == "IN":
            return self._in_list(item, negated)
        if word == "BETWEEN":
            low = self._expression(_LEVELS["IN"])
            self._expect("AND")
            high = self._expression(_LEVELS["IN"])
            return BetweenSyntax(item.at, self._level(item.at, item, low, high), item, low, high, negated)
        pattern = self._expression(_LEVELS["IN"])
        escape = self._expression(_LEVELS["IN"]) if self._accept("ESCAPE") else None
        depth = self._level(item.at, item, pattern, escape)
        return LikeSyntax(item.at, depth, item, pattern, escape, word == "ILIKE", negated)

    def _in_list(self, item: Syntax, negated: bool) -> Syntax:
        self._expect("(")
        options = self._arguments()
        if not options:
            self._fail(item.at, "IN has an empty list", "write at least one value")
        return InSyntax(item.at, self._level(item.at, item, *options), item, options, negated)

    def _arguments(self) -> tuple[Syntax, ...]:
        if self._accept(")"):
            return ()
        items = [self._expression()]
        while self._accept(","):
            items.append(self._expression())
        self._expect(")")
        return tuple(items)

    # Values

    def _primary(self) -> Syntax:
        token = self._peek()
        if token.kind == "number":
            return NumberSyntax(token.at, 1, self._take().text)
        if token.kind == "text":
            return TextSyntax(token.at, 1, _unquote(self._take().text))
        if token.kind == "bytes":
            return ConstantSyntax(token.at, 1, bytes.fromhex(self._take().text[2:-1]))
        if token.kind == "quoted":
            return self._name()
        if self._accept("("):
            return self._parenthesis()
        if token.kind == "word":
            return self._word(token)
        return self._unexpected("a column, a value or '(' is expected here")

    def _parenthesis(self) -> Syntax:
        if self._peek().word in ("SELECT", "WITH", "VALUES"):
            self._unexpected("subqueries are not accepted in a predicate: use sql() for them")
        item = self._expression()
        self._expect(")")
        return item

    def _word(self, token: _Token) -> Syntax:
        constants: dict[str, bool | None] = {"NULL": None, "TRUE": True, "FALSE": False}
        if token.word in constants:
            self._take()
            return ConstantSyntax(token.at, 1, constants[token.word])
        if token.word == "CASE":
            return self._case()
        if token.word == "CAST" and self._peek(1).word == "(":
            return self._cast()
        if token.word in ("DATE", "TIMESTAMP", "TIMESTAMPTZ") and self._peek(1).kind == "text":
            kind = self._take().word.removesuffix("TZ")
            return TextSyntax(token.at, 1, _unquote(self._take().text), kind)
        if token.word in _RESERVED:
            self._unexpected(f'a value is expected here; a column of that name is written "{token.text}"')
        if self._peek(1).word == "(":
            return self._call()
        return self._name()

    def _name(self) -> Syntax:
        at = self._peek().at
        parts = [self._name_part()]
        while self._peek().word in (".", "["):
            bracket = self._take().word == "["
            parts.append(self._field_in_brackets() if bracket else self._name_part())
        return NameSyntax(at, 1, tuple(parts))

    def _name_part(self) -> tuple[str, bool]:
        token = self._peek()
        if token.kind not in ("word", "quoted"):
            self._unexpected("a column or field name is expected here")
        self._take()
        return (token.text[1:-1].replace('""', '"'), True) if token.kind == "quoted" else (token.text, False)

    def _field_in_brackets(self) -> tuple[str, bool]:
        if self._peek().kind != "text":
            self._unexpected(
                "write a struct's field as column['field']; elements of lists and maps cannot be used"
            )
        name = _unquote(self._take().text)
        self._expect("]")
        return name, True

    def _call(self) -> Syntax:
        token = self._take()
        self._expect("(")
        if token.word == "EXTRACT":
            return self._extract(token.at)
        arguments = self._arguments()
        if self._peek().word in ("OVER", "FILTER"):
            self._unexpected("aggregate and window functions are not accepted in a predicate")
        return CallSyntax(token.at, self._level(token.at, *arguments), token.text.lower(), arguments)

    def _extract(self, at: int) -> Syntax:
        unit = self._take()
        self._expect("FROM")
        item = self._expression()
        self._expect(")")
        return CallSyntax(at, self._level(at, item), "date_part", (TextSyntax(unit.at, 1, unit.text), item))

    def _case(self) -> Syntax:
        at = self._take().at
        operand = None if self._peek().word == "WHEN" else self._expression()
        branches: list[tuple[Syntax, Syntax]] = []
        while self._accept("WHEN"):
            condition = self._expression()
            self._expect("THEN")
            branches.append((condition, self._expression()))
        if not branches:
            self._unexpected("CASE needs at least one WHEN … THEN …")
        default = self._expression() if self._accept("ELSE") else None
        self._expect("END")
        parts = [part for branch in branches for part in branch]
        return CaseSyntax(at, self._level(at, operand, default, *parts), operand, tuple(branches), default)

    def _cast(self) -> Syntax:
        at = self._take().at
        self._expect("(")
        item = self._expression()
        self._expect("AS")
        type_text = self._type_text()
        self._expect(")")
        return CastSyntax(at, self._level(at, item), item, type_text)

    def _type_text(self) -> str:
        if self._peek().kind != "word":
            self._unexpected("a type such as Int64 or Decimal(10,2) is expected here")
        words = [self._take().text]
        while self._peek().word in ("PRECISION", "WITH", "WITHOUT", "TIME", "ZONE"):
            words.append(self._take().text)
        return " ".join(words) + self._type_parameters()

    def _type_parameters(self) -> str:
        if not self._accept("("):
            return ""
        numbers: list[str] = []
        while not numbers or self._accept(","):
            if self._peek().kind != "number":
                self._unexpected("a number is expected here, as in Decimal(10,2)")
            numbers.append(self._take().text)
        self._expect(")")
        return f"({','.join(numbers)})"


def _unquote(text: str) -> str:
    return text[1:-1].replace("''", "'")
