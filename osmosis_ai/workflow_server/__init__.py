"""The server that runs workflows for a controller, and the backends behind it.

    create_rollout_server    an ASGI application over a backend
    LocalBackend             runs a workflow and its grader in this process

A controller posts a rollout with the URL of its model and gets two calls back: how the workflow
ended, and the graded sample.
"""
