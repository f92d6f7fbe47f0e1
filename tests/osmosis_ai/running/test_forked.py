from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCRIPT = """
import asyncio, os, sys
from osmosis_ai.agents.grader import run_grader
from osmosis_ai.agents.workflow import AgentWorkflowContext, run_workflow
from osmosis_ai.rollout import AgentWorkflow, Grader, GraderContext, RolloutContext, RolloutSample
from osmosis_ai.rollout.testing import ScriptedModel, rollout
from osmosis_ai.running.thread_calls import CallThreads
from pytest_osmosis.user_code.eval_function import eval_fn

def fork():
    child = os.fork()
    if child:
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    return child == 0

def agent_of(child_code):
    async def agent(ctx):
        if fork():
            await child_code(ctx)
        return ctx.complete([])
    return agent

async def returns(ctx): pass
async def raises(ctx): raise ValueError
async def exits(ctx): sys.exit(0)
async def waits(ctx): await asyncio.sleep(0)
async def asks(ctx):
    await ctx.chat([])
    os._exit(0)

for child_code in (returns, raises, exits, waits, asks):
    rollout(agent_of(child_code), ScriptedModel(["A."]), user="Q")
    print(child_code.__name__, flush=True)

class Workflow(AgentWorkflow):
    async def run(self, ctx):
        fork()
        return []

asyncio.run(run_workflow(Workflow(), AgentWorkflowContext(prompt=[]), RolloutContext()))
print("workflow", flush=True)

class Grading(Grader):
    async def grade(self, ctx):
        fork()

asyncio.run(run_grader(Grading(), GraderContext()))
print("grader", flush=True)

def score(solution_str, ground_truth, extra_info=None):
    fork()
    return 1.0

async def async_score(solution_str, ground_truth, extra_info=None):
    return score(solution_str, ground_truth)

async def scored(function):
    given = {"messages": [], "solution_str": "", "ground_truth": None, "metadata": {}}
    called = eval_fn(function, name="f", option="--eval-fn").call
    await called(**given, run_sync=CallThreads().run)

for function in (score, async_score):
    asyncio.run(scored(function))
    print(function.__name__, flush=True)
"""


@pytest.mark.fault("code forks")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no os.fork")
def test_a_forked_child_that_comes_back_from_user_code_is_ended():
    ran = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    codes = ["returns", "raises", "exits", "waits", "asks"]
    codes += ["workflow", "grader", "score", "async_score"]
    assert ran.stdout.split() == [word for code in codes for word in ("1", code)], ran.stderr
    assert ran.stderr.count("forked by an agent") == len(codes)
