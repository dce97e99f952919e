"""Compares cinta's WordPiece with the `tokenizers` library: every code point, then 12 MB of text of many scripts.

    wordpiece_corpus.py --words WORDPIECE_WORDS --cinta CINTA [--text /usr/share/locale]

WORDPIECE_WORDS is built from wordpiece_words.cpp, CINTA is the command. Needs `tokenizers` and `transformers`. Writes
tests/golden/wordpiece_code_points.json (what differs, by class, and check sums of all that does not) and
tests/golden/tokenizer_json.json (files that `tokenizers` wrote, and ids). Each class of differences is decided below; what
is in none of them is an error.
"""
import argparse
import collections
import gettext
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import unicodedata
import zlib

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from transformers import BertTokenizerFast

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
GOLDEN = pathlib.Path(__file__).parent.parent / "golden"
BLOCK = 4096

# What differs, and which side cinta takes: that of google-research/bert with the tables of Unicode 15.
DECIDED = {
    "private": "private use (Co): the library drops it, cinta keeps it",
    "younger": "younger than Unicode 15: the library knows its lower case; cinta keeps it as it is",
    "ideographs": "U+2B820-2B91F: the library's block of ideographs begins at 2B920 by a slip; each is a word in cinta",
    "format": "format characters (Cf) younger than the library's table: cinta drops them",
    "punctuation": "punctuation (P*) younger than the library's table: a word of its own in cinta",
    "marks": "marks (Mn) younger than the library's table: cinta drops them from uncased text",
    "changed": "U+166D is a symbol now, U+1734 a spacing mark, U+11938 decomposes",
}


def class_of(point, lower, cased):
    """By the category; by cinta's words of the point between a and b where this Python's tables do not have it."""
    character, category = chr(point), unicodedata.category(chr(point))
    if point in (0x166D, 0x1734, 0x11938):
        return "changed"
    if 0x2B820 <= point < 0x2B920:
        return "ideographs"
    if category == "Cn":
        if lower == "ab":
            return "format" if cased == "ab" else "marks"
        return "punctuation" if lower == f"a\x1f{character}\x1fb" else "younger" if lower == cased == f"a{character}b" else "other"
    return {"Co": "private", "Cf": "format", "Mn": "marks"}.get(category, "punctuation" if category[0] == "P" else "other")


def library(lower):
    return normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=lower), pre_tokenizers.BertPreTokenizer()


def library_words(parts, text):
    return "\x1f".join(word for word, _ in parts[1].pre_tokenize_str(parts[0].normalize_str(text)))


def ours(program, mode, lines):
    run = subprocess.run([program, str(mode)], input="".join(line + "\n" for line in lines).encode(), capture_output=True, check=True)
    return run.stdout.decode().split("\n")[:-1]


def ranges(points):
    out = []
    for point in sorted(points):
        if out and out[-1][1] == point - 1:
            out[-1][1] = point
        else:
            out.append([point, point])
    return out


def compare_code_points(program):
    """Each code point alone and between two letters. Returns the golden and the characters that differ."""
    points = [p for p in range(0x110000) if not 0xD800 <= p < 0xE000]
    asked = [p for p in points if p != 0x0A]  # the program reads lines; a line's end is known to part words
    words = {}
    for lower in (True, False):
        lines = [text for p in asked for text in (chr(p), f"a{chr(p)}b")]
        parts = library(lower)
        theirs, found = [library_words(parts, line) for line in lines], ours(program, "lower" if lower else "cased", lines)
        assert len(theirs) == len(found)
        words[lower] = {p: (theirs[2 * i], theirs[2 * i + 1], found[2 * i], found[2 * i + 1]) for i, p in enumerate(asked)}
        words[lower][0x0A] = ("", "a\x1fb", "", "a\x1fb")
    differs = collections.defaultdict(set)
    for lower in (True, False):
        for point, (alone, inside, our_alone, our_inside) in words[lower].items():
            if (alone, inside) != (our_alone, our_inside):
                differs[class_of(point, words[True][point][3], words[False][point][3])].add(point)
    print(f"{len(points)} code points, alone and inside a word, lower-cased and cased; Unicode {unicodedata.unidata_version} here")
    for name, which in sorted(differs.items()):
        print(f"  {len(which):7} differ: {DECIDED.get(name, 'UNEXPECTED ' + name)}: such as", " ".join(f"U+{p:04X}" for p in sorted(which)[:6]))
    all_different = set().union(*differs.values())
    sums = {}
    for lower in (True, False):
        blocks = []
        for begin in range(0, 0x110000, BLOCK):
            texts = [f"{words[lower][p][0]}\x1e{words[lower][p][1]}\n" for p in range(begin, begin + BLOCK) if p in words[lower] and p not in all_different]
            blocks.append(zlib.crc32("".join(texts).encode()))
        sums["lower" if lower else "cased"] = blocks
    golden = {"block": BLOCK, "differ": {name: ranges(which) for name, which in sorted(differs.items())}, "crc32": sums}
    return golden, {chr(p) for p in all_different}, "other" not in differs


def translations(folder, bytes_each=100_000):
    """Messages of programs in every language they were translated to."""
    for language in sorted(p for p in pathlib.Path(folder).iterdir() if (p / "LC_MESSAGES").is_dir()):
        taken = 0
        for file in sorted((language / "LC_MESSAGES").glob("*.mo")):
            try:
                with open(file, "rb") as stream:
                    texts = gettext.GNUTranslations(stream)._catalog.values()
                    lines = [line for text in texts for line in text.split("\n") if any(ord(c) > 127 for c in line)]
            except (OSError, UnicodeDecodeError, ValueError, LookupError):
                continue
            for line in lines:
                taken += len(line.encode())
                yield line
            if taken > bytes_each:
                break


def made_up(count):
    """Lines in one script after the other, with marks, punctuation and spaces of any."""
    chance = random.Random(1)
    scripts = collections.defaultdict(list)
    for point in range(0x20, 0x30000):
        character = chr(point)
        if unicodedata.category(character) not in ("Cn", "Cs", "Co"):
            scripts[unicodedata.name(character, "CONTROL").split()[0]].append(character)
    names = sorted(name for name, members in scripts.items() if len(members) > 20)
    marks = [c for members in scripts.values() for c in members if unicodedata.category(c)[0] in "MPZC"]
    for i in range(count):
        members = scripts[names[i % len(names)]]
        words = ["".join(chance.choice(members) for _ in range(chance.randint(1, 8))) for _ in range(8)]
        line = "".join(word + chance.choice([" ", " ", " ", ", ", chance.choice(marks), "a", "É"]) for word in words)
        yield line.replace("\n", " ")


def compare_text(arguments, different):
    lines = list(translations(arguments.text)) + list(made_up(60_000))
    size = sum(len(line.encode()) + 1 for line in lines)
    print(f"{size / 1e6:.1f} MB of text, {len(lines)} lines, {len(set(''.join(lines)))} different characters")
    good = size >= 10_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "text").mkdir()
        sample = lines[:: 8]
        for i in range(8):
            (folder / "text" / f"{i}.txt").write_text("\n".join(sample[i::8]), encoding="utf-8")
        train = [arguments.cinta, "train", "bert", "--data", folder / "text", "--output_dir", folder / "run", "--vocab_size", "8000",
                 "--sequence_length", "16", "--batch_size", "2", "--max_steps", "1", "--report", "none", "--quiet", "--overfit_batches", "1"]
        subprocess.run([str(word) for word in train], check=True, stdout=subprocess.DEVNULL)
        learnt = (folder / "run" / "vocab.txt").read_text(encoding="utf-8").split("\n")[:-1]
        loaded = BertTokenizerFast.from_pretrained(folder / "run")
        assert loaded.vocab_size == len(learnt) and loaded.convert_tokens_to_ids(learnt) == list(range(len(learnt)))
        mine = ours(arguments.words, folder / "run", sample)
        theirs = loaded(sample, add_special_tokens=False)["input_ids"]
        unequal = [i for i, ids in enumerate(theirs) if " ".join(map(str, ids)) != mine[i]]
        unexplained = [i for i in unequal if not set(sample[i]) & different]
        print(f"a vocabulary of {len(learnt)} learnt by cinta loads in BertTokenizerFast; of {len(sample)} lines {len(unequal)} differ, "
              f"{len(unexplained)} without a character that is known to")
        good = good and not unexplained
        for lower in (True, False):
            words = {w for line in lines for w in library_words(library(lower), line).split("\x1f")}
            words.update(w for line in ours(arguments.words, "lower" if lower else "cased", lines) for w in line.split("\x1f"))
            characters = sorted({c for word in words for c in word})
            vocabulary = list(dict.fromkeys(learnt + characters + ["##" + c for c in characters]))
            tokenizer = Tokenizer(models.WordPiece({t: i for i, t in enumerate(vocabulary)}, unk_token="[UNK]", max_input_chars_per_word=100))
            tokenizer.normalizer, tokenizer.pre_tokenizer = library(lower)
            tokenizer.add_special_tokens(SPECIALS)
            place = folder / ("lower" if lower else "cased")
            place.mkdir()
            tokenizer.save(str(place / "tokenizer.json"))
            mine = ours(arguments.words, place, lines)
            theirs = [" ".join(map(str, e.ids)) for e in tokenizer.encode_batch(lines, add_special_tokens=False)]
            unequal = [i for i in range(len(lines)) if mine[i] != theirs[i]]
            unexplained = [i for i in unequal if not set(lines[i]) & different]
            tokens = sum(len(line.split()) for line in mine)
            unknown = sum(line.split().count("1") for line in mine)
            print(f"{'lower' if lower else 'cased'}: {tokens} tokens of {len(vocabulary)} kinds, {unknown} [UNK]; {len(unequal)} lines differ, "
                  f"{len(unexplained)} without a character that is known to")
            for i in unexplained[:10]:
                print("  ", ascii(lines[i]), "\n    cinta", mine[i][:200], "\n    library", theirs[i][:200])
            good = good and not unexplained
    return good


def golden_files():
    """tokenizer.json as the library writes it, with each pair of flags, and the ids that it then gives."""
    vocabulary = SPECIALS + ["un", "##aff", "##able", "É", "é", "e", "##té", "##te", "##E", "##t", "a", "A", "##b", "!", "中", "[", "]", "mask"]
    texts = ["unaffable Été été", "[MASK] [mask] A!b中a", "e\u0301te\u0301 E\u0301t"]
    out = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
        for lower, strip in ((True, None), (False, None), (False, True), (True, False)):
            tokenizer = BertTokenizerFast(vocab_file=str(folder / "vocab.txt"), vocab=str(folder / "vocab.txt"), do_lower_case=lower, strip_accents=strip)
            tokenizer.save_pretrained(folder / "saved")
            file = json.loads((folder / "saved" / "tokenizer.json").read_text(encoding="utf-8"))
            out.append({"file": file, "texts": [{"text": text, "ids": tokenizer(text)["input_ids"]} for text in texts]})
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--words", required=True)
    parser.add_argument("--cinta", required=True)
    parser.add_argument("--text", default="/usr/share/locale")
    arguments = parser.parse_args()
    golden, different, good = compare_code_points(arguments.words)
    (GOLDEN / "wordpiece_code_points.json").write_text(json.dumps(golden, separators=(",", ":")) + "\n")
    (GOLDEN / "tokenizer_json.json").write_text(json.dumps(golden_files(), ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    good = compare_text(arguments, different) and good
    sys.exit(0 if good else "differences that nobody has decided")


if __name__ == "__main__":
    main()
