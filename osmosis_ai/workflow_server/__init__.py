"""The server that runs workflows for a controller.

    create_rollout_server    an ASGI application over a backend
    LocalBackend             the workflow and its grader, which run in this process

A controller posts a rollout with the URL of its model and gets two calls back: how the workflow
ended, and the graded sample.
"""
