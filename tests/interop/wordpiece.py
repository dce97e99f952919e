"""Compares cinta's WordPiece with the tokenizers of Python and writes tests/golden/wordpiece.json.

Needs `transformers` (5.x) and `tokenizers`. With `--words PROGRAM`, a program that prints the words of each line it reads,
parted by U+001F (tests/interop/wordpiece_words.cpp, whose head says how to build it), every code point is compared too.

Where the Python ("slow") and the Rust ("fast") tokenizer differ, DECIDED says which one cinta follows and why; a difference
that is not listed there is an error. Pairs are cut as the fast one's longest_first does: where both are too long and the
room is odd, the longer keeps a token more, the second of equals; the slow one gives it to the first. Two more are known from the code points: the slow one drops unassigned (Cn) and both
drop private-use (Co) characters, where google-research/bert and cinta keep them.
"""
import argparse
import collections
import json
import pathlib
import subprocess
import sys
import tempfile
import unicodedata

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers.models.bert.tokenization_bert_legacy import BasicTokenizer, BertTokenizerLegacy

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]

TEXTS = [
    "", " ", "\t\r\n", "Hello, World!", "unaffable unaffableness", "template <typename _Tp> struct is_same;",
    "std::[MASK]<int> v;", "[CLS] in [SEP] text [PAD]", "[mask] [ MASK ] [MASK", "[MASK][MASK]x[UNK]",
    "a\u200bb", "soft\u00adhyphen", "a\u00a0b", "a\u0085b", "a\u000bb", "a\u0000b\ufffdc", "a\u2028b\u2029c", "a\u3000b",
    "\u0130stanbul ISTANBUL", "stra\u00dfe STRASSE \u1e9e", "\ufb01n \uff21\uff22", "\ud55c\uad6d\uc5b4", "\u304c\u306a", "\u0439 \u0419",
    "\u0e19\u0e49\u0e33", "\u0915\u093c", "\U0001F468\u200d\U0001F469\u200d\U0001F467 ok", "it\u2019s", "\u4f60\u597d\u4e16\u754c abc\u4e2ddef", "\u3042\u30a2\u4e9c",
    "\U00020000x\U0002B820x", "\uf900x", "\u00e9cole E\u0301cole na\u00efve \u00c5ngstr\u00f6m \u212b", "\u00a3 \u20ac \u00d7 \u00a9 $ ^ ` | ~ +", "\u037e\u1fef",
    "\u05e9\u05c1\u05dc\u05d5\u05dd", "\u0645\u064e\u0631\u062d\u0628\u0627\u060c", "\u039f\u0394\u03a5\u03a3\u03a3\u0395\u03a5\u03a3 \u03c3\u03c2", "x" * 100 + " " + "x" * 101, "\u00e9" * 100 + " " + "\u00e9" * 101,
    "don't stop... (really?) \u00abquote\u00bb \u2014 dash", "snake_case camelCase 3.14e-10 0xFF", "\u1e0b\u0323 \u0064\u0323\u0307",
    "\u302e\u302f\u0301a", "a\u061cb\u2066c", "zzzz \u2603 snow", "\u00bd \u2075 \u2160 \u01c5",
]

# What decides whether a capital sigma is final: letters, what is passed over (marks, apostrophes, full stops), anything else.
SIGMAS = [
    "\u039f\u0394\u03a5\u03a3\u03a3\u0395\u03a5\u03a3", "\u03a3\u0391\u03a3 \u03a3 \u03a3\u03a3", "\u0391\u03a3. \u0391\u03a3.\u0392 \u0391\u03a3..", "\u0391\u03a3'\u0392 \u0391\u03a3\u2019", "\u0391\u03a3\u0301\u0392 \u0391\u03a3\u0301",
    "\u00aa\u03a3 1\u03a3 \u24b6\u03a3 \u216b\u03a3", "\u0391\u03a3\u24b7 \u0391\u03a31", "\u0391\u00ad\u03a3 \u02b0\u03a3 a\u02b0\u03a3", "\u0391\u03a3\u4f60\u0392", "\u0391\u03a3,\u0392 \u0391\u03a3-\u0392 \u0391\u03a3_\u0392", "\u0391\u03a3\t\u0392\n\u0391\u03a3",
]

DECIDED = {
    "\U00020000x\U0002B820x": ("slow", "the fast one's CJK block begins at 2B920 instead of 2B820"),
    "\u039f\u0394\u03a5\u03a3\u03a3\u0395\u03a5\u03a3 \u03c3\u03c2": ("fast", "a final capital sigma becomes a plain small one"),
    "\uf900x": ("fast", "cased text is not put into NFC"),
    "\u00e9cole E\u0301cole na\u00efve \u00c5ngstr\u00f6m \u212b": ("fast", "cased text is not put into NFC"),
    "\u037e\u1fef": ("fast", "cased text is not put into NFC"),
    "\u1e0b\u0323 \u0064\u0323\u0307": ("fast", "cased text is not put into NFC"),
}

PAIRS = [("how are you", "fine thanks", 0), ("a b c d e f", "g h", 8), ("a b", "c d e f g", 7), ("a b c d", "e f g h", 8), ("", "b", 0)]

# Room for two texts of 0 .. LONGEST tokens each.
ROOMS, LONGEST = (1, 4, 9, 10, 13), 12


def fast(vocabulary, lower):
    """The Rust tokenizer as BertTokenizer sets it up."""
    tokenizer = Tokenizer(models.WordPiece({t: i for i, t in enumerate(vocabulary)}, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=lower)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(SPECIALS)
    return tokenizer


def fast_pairs(vocabulary, length):
    """The same, framing pairs cut to `length` tokens (0: not cut)."""
    tokenizer = fast(vocabulary, True)
    specials = [(token, vocabulary.index(token)) for token in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=specials)
    if length:
        tokenizer.enable_truncation(length, strategy="longest_first")
    return tokenizer


def kept_of_first(vocabulary, room):
    """[first][second]: how many tokens of the first of two texts are kept; of the second, what room is left."""
    tokenizer = fast_pairs(vocabulary, room + 3)
    return [[tokenizer.encode("b " * first, "b " * second).type_ids.count(0) - 2 for second in range(LONGEST + 1)]
            for first in range(LONGEST + 1)]


def basic_tokenizer(lower):
    """The Python tokenizer's words, before they are cut into pieces."""
    return BasicTokenizer(do_lower_case=lower)


def make_vocabulary(words):
    """Specials, words of two texts, then every character of `words` that is not a snowman, alone and inside a word."""
    whole = ["hello", "un", "##aff", "##able", "std", "template", "##name", "type", "int", "in", "text", "ab", "istanbul", "b"]
    characters = sorted({c for word in words for c in word} - set("\u2603"))
    return list(dict.fromkeys(SPECIALS + whole + characters + ["##" + c for c in characters]))


def compare_code_points(program):
    """Every code point between two letters, against Python's words. Prints what differs, by category."""
    points = [p for p in range(0x110000) if not 0xD800 <= p < 0xE000 and p not in (0x0A,)]
    lines = "".join(f"a{chr(p)}b\n" for p in points)
    for lower in (True, False):
        python = basic_tokenizer(lower)
        run = subprocess.run([program, "lower" if lower else "cased"], input=lines.encode(), capture_output=True, check=True)
        ours = run.stdout.decode().split("\n")
        differs = collections.defaultdict(list)
        for point, mine in zip(points, ours):
            wanted = "\x1f".join(python.tokenize(f"a{chr(point)}b"))
            if mine != wanted:
                differs[unicodedata.category(chr(point))].append(point)
        print(f"{'lower' if lower else 'cased'}: {len(points)} code points; differing, by category in Unicode {unicodedata.unidata_version}:")
        for category, which in sorted(differs.items()):
            print(f"  {category}: {len(which)}, such as {' '.join(f'U+{p:04X}' for p in which[:8])}")


def compare_sigmas(program):
    """Every code point where it can decide whether a sigma is final."""
    points = [p for p in range(0x110000) if not 0xD800 <= p < 0xE000 and p not in (0x0A,)]
    for line in ("\u0391\u03a3{}", "{}\u03a3", "\u0391{}\u03a3", "\u0391\u03a3{}\u0392"):
        run = subprocess.run([program, "sigma"], input="".join(line.format(chr(p)) + "\n" for p in points).encode(), capture_output=True, check=True)
        differs = [point for point, mine in zip(points, run.stdout.decode().split("\n"))
                   if mine.count("\u03c2") != "".join(basic_tokenizer(True).tokenize(line.format(chr(point)))).count("\u03c2")]
        print(f"sigma in {ascii(line)}: {len(points)} code points, {len(differs)} decide otherwise {collections.Counter(unicodedata.category(chr(p)) for p in differs)}, "
              f"such as {' '.join(f'U+{p:04X}' for p in differs[:8])}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--words", help="program that prints the words of each line")
    parser.add_argument("--output", default=pathlib.Path(__file__).parent.parent / "golden" / "wordpiece.json")
    arguments = parser.parse_args()
    words = set()
    for lower in (True, False):
        for text in TEXTS:
            words.update(basic_tokenizer(lower).tokenize(text))
        for first, second, _ in PAIRS:
            words.update(basic_tokenizer(lower).tokenize(first + " " + second))
    vocabulary = make_vocabulary(words)
    golden = {"vocabulary": vocabulary, "texts": [], "pairs": []}
    golden["final_sigma"] = [{"text": text, "words": basic_tokenizer(True).tokenize(text)} for text in SIGMAS]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "vocab.txt"
        path.write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
        for lower in (True, False):
            slow = BertTokenizerLegacy(str(path), do_lower_case=lower)
            rust = fast(vocabulary, lower)
            for text in TEXTS:
                ids = {"slow": slow.encode(text, add_special_tokens=False), "fast": rust.encode(text, add_special_tokens=False).ids}
                which, reason = "slow", ""
                if ids["slow"] != ids["fast"]:
                    which, reason = DECIDED[text]
                    print(ascii(text), f"lower={lower}: the {which} one is right:", reason)
                golden["texts"].append({"text": text, "lower": lower, "ids": ids[which]})
            if lower:
                for first, second, length in PAIRS:
                    both = fast_pairs(vocabulary, length).encode(first, second)
                    golden["pairs"].append({"first": first, "second": second, "length": length, "ids": both.ids, "types": both.type_ids})
    golden["rooms"] = [{"room": room, "kept_of_first": kept_of_first(vocabulary, room)} for room in ROOMS]
    pathlib.Path(arguments.output).write_text(json.dumps(golden, ensure_ascii=True, separators=(",", ":")).replace('{"text"', '\n{"text"').replace('{"first"', '\n{"first"').replace('{"room"', '\n{"room"') + "\n")
    if arguments.words:
        compare_code_points(arguments.words)
        compare_sigmas(arguments.words)


if __name__ == "__main__":
    sys.exit(main())
