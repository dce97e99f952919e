"""Shows the event files of a run to the real TensorBoard, as it reads them, and compares with metrics.jsonl.

    python tests/interop/tensorboard_events.py build/release/bin/cinta     (needs tensorboard)
    python tests/interop/tensorboard_events.py --golden                    prints the bytes in tests/tensorboard.cpp

It trains a perceptron, kills a second run after lines that no checkpoint has, resumes it, and finds in both what was
logged: every number of every step once, those of the killed run's lost steps replaced.
"""
import json
import math
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import time

from tensorboard.backend.event_processing import event_accumulator, plugin_event_multiplexer
from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.summary.writer import record_writer


def golden():
    """The records of tests/tensorboard.cpp, by TensorBoard's own writer."""
    values = [summary_pb2.Summary.Value(tag="train/loss", simple_value=2.5),
              summary_pb2.Summary.Value(tag="train/grad_norm", simple_value=-0.125)]
    started = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
    for event in (event_pb2.Event(wall_time=1.7e9, file_version="brain.Event:2"),
                  event_pb2.Event(wall_time=1.7e9 + 1, step=14, session_log=started),
                  event_pb2.Event(wall_time=1.7e9 + 2.5, step=300, summary=summary_pb2.Summary(value=values))):
        with tempfile.TemporaryFile() as file:
            record_writer.RecordWriter(file).write(event.SerializeToString())
            file.seek(0)
            print(file.read().hex())


def logged(directory):
    """(tag, step) -> value of metrics.jsonl, in single precision."""
    out = {}
    for line in (directory / "metrics.jsonl").read_text().splitlines()[1:]:
        fields = json.loads(line)
        step = fields.pop("step")
        evaluation = any(name.startswith("eval_") for name in fields)
        for name, value in fields.items():
            if isinstance(value, bool) or isinstance(value, str) and value not in ("NaN", "Inf", "-Inf"):
                continue
            out[("eval/" if evaluation else "train/") + name.removeprefix("eval_"), step] = struct.unpack("f", struct.pack("f", float(value)))[0]
    return out


def shown(directory):
    """The same as TensorBoard has it; a step that appears twice in a series is an error."""
    accumulator = event_accumulator.EventAccumulator(str(directory), size_guidance={event_accumulator.SCALARS: 0})
    accumulator.Reload()
    out = {}
    for tag in accumulator.Tags()["scalars"]:
        for event in accumulator.Scalars(tag):
            assert (tag, event.step) not in out, f"{tag} has step {event.step} twice"
            assert abs(event.wall_time - time.time()) < 600
            out[tag, event.step] = event.value
    return out


def compare(directory):
    want, have = logged(directory), shown(directory)
    assert want.keys() == have.keys(), want.keys() ^ have.keys()
    for key, value in want.items():
        assert have[key] == value or math.isnan(have[key]) and math.isnan(value), (key, value, have[key])
    files = sorted(path.name for path in directory.glob("events.out.tfevents.*"))
    print(f"{directory.name}: {len(want)} points of {len({tag for tag, _ in want})} series in {len(files)} file(s) agree")


def train(program, directory, *more):
    return [program, "train", "mlp", "--data", "generated", "--max_steps", "4000", "--hidden", "64", "--quiet",
            "--threads", "1", "--logging_steps", "10", "--eval_steps", "500", "--save_steps", "700", "--report_to",
            "jsonl,tensorboard", "--output_dir", str(directory), *more]


def main(program):
    with tempfile.TemporaryDirectory() as scratch:
        whole, parts = pathlib.Path(scratch, "whole"), pathlib.Path(scratch, "parts")
        subprocess.run(train(program, whole), check=True, stdout=subprocess.DEVNULL)
        compare(whole)
        child = subprocess.Popen(train(program, parts), stdout=subprocess.DEVNULL)
        while not (parts / "checkpoint-700").exists() or max([step for _, step in logged(parts)] or [0]) < 760:
            time.sleep(0.005)
        child.send_signal(signal.SIGKILL)
        child.wait()
        lost = max(step for _, step in logged(parts))
        saved = max(int(path.name.split("-")[1]) for path in parts.glob("checkpoint-*"))
        print(f"killed at step {lost}, the last checkpoint is of step {saved}")
        subprocess.run(train(program, parts, "--resume"), check=True, stdout=subprocess.DEVNULL)
        compare(parts)
        assert logged(whole) == logged(parts)
        multiplexer = plugin_event_multiplexer.EventMultiplexer().AddRunsFromDirectory(scratch)
        multiplexer.Reload()
        print("runs seen below the directory:", sorted(multiplexer.Runs()))


if __name__ == "__main__":
    golden() if sys.argv[1] == "--golden" else main(sys.argv[1])
