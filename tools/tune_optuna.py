#!/usr/bin/env python3
"""Chooses values and gives up trials with Optuna, for `cinta tune`, which starts this.

One JSON object a line comes in and is answered by one:
  {"op": "begin", "space": {name: distribution}, "sampler": "tpe" or "", "pruner": "none" | "median" | "asha",
   "direction", "seed", "warmup", "storage", "study", "finished": [trial, ..]}       -> {"optuna": version}
  {"op": "ask", "trial": number, "params": {..} or null: to be chosen}              -> {"params": {..}}
  {"op": "report", "evaluation": from 1, "value"}                                    -> {"prune": true | false}
  {"op": "tell", "trial": trial}                                                     -> {}
A trial is a line of trials.jsonl. What goes wrong is answered by {"error": text}, which ends the program.
"""
import json
import os
import sys
import warnings

LABEL = "cinta_trial"  # the attribute of Optuna's trial that holds our number


class Search:
    def __init__(self, request):
        try:
            import optuna
        except ImportError as error:
            raise SystemExit(f"{sys.executable} cannot import it ({error})")
        warnings.simplefilter("ignore")  # what is experimental, and values reported again by a resumed trial
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.optuna = optuna
        self.request = request
        self.space = {name: optuna.distributions.json_to_distribution(json.dumps(distribution))
                      for name, distribution in request["space"].items()}
        self.study = optuna.create_study(storage=request["storage"] or None, study_name=request["study"],
                                         direction=request["direction"], pruner=self.pruner(), load_if_exists=True)
        self.trial = None
        for trial in request["finished"]:
            self.tell(trial)

    def pruner(self):
        pruners, warmup = self.optuna.pruners, self.request["warmup"]
        if self.request["pruner"] == "median":
            return pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=warmup - 1)
        if self.request["pruner"] == "asha":
            return pruners.SuccessiveHalvingPruner(min_resource=warmup, reduction_factor=3)
        return pruners.NopPruner()

    def sampler(self, number, params):
        """One for each trial, so that a search that was interrupted chooses as if it had not been."""
        samplers = self.optuna.samplers
        seed = (self.request["seed"] * 1_000_003 + number) % 2**32
        if params is not None:
            return samplers.PartialFixedSampler(params, samplers.RandomSampler(seed=seed))
        return samplers.TPESampler(seed=seed)

    def find(self, number):
        found = [t for t in self.study.get_trials(deepcopy=False) if t.user_attrs.get(LABEL) == number]
        return found[-1] if found else None

    def ask(self, number, params):
        begun = self.find(number)
        if begun and not begun.state.is_finished():
            self.trial = self.optuna.trial.Trial(self.study, begun._trial_id)
        else:
            self.study.sampler = self.sampler(number, params)
            self.trial = self.study.ask(self.space)
            self.trial.set_user_attr(LABEL, number)
        return {"params": self.trial.params}

    def report(self, evaluation, value):
        if value is None:  # NaN
            return {"prune": False}
        self.trial.report(value, evaluation)
        return {"prune": bool(self.trial.should_prune())}  # a bool of numpy in 3.1

    def tell(self, trial):
        """One that this study has not seen, as where it lay in memory alone, is played again first."""
        states = self.optuna.trial.TrialState
        if not self.find(trial["trial"]):
            self.ask(trial["trial"], trial["params"])
            for i, value in enumerate(trial["values"]):
                self.report(i + 1, value)
        known = self.find(trial["trial"])
        if known.state.is_finished():
            return {}
        if trial["state"] == "complete" and trial["objective"] is not None:
            self.study.tell(known.number, trial["objective"])
        else:
            self.study.tell(known.number, state=states.PRUNED if trial["state"] == "pruned" else states.FAIL)
        return {}

    def answer(self, request):
        if request["op"] == "ask":
            return self.ask(request["trial"], request["params"])
        if request["op"] == "report":
            return self.report(request["evaluation"], request["value"])
        return self.tell(request["trial"])


def main():
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a library prints is no answer
    search = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["op"] == "begin":
                search = Search(request)
                answer = {"optuna": search.optuna.__version__}
            else:
                answer = search.answer(request)
        except (Exception, SystemExit) as error:
            text = f"{type(error).__name__}: {error}" if isinstance(error, Exception) else str(error)
            print(json.dumps({"error": text}), file=answers)
            raise
        print(json.dumps(answer), file=answers)


if __name__ == "__main__":
    main()
