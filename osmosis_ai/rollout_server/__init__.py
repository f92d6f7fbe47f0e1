"""The RolloutServer: runs an agent loop for a trainer, which hosts the model.

    trainer --POST /v1/rollout/init-----------> server     202, the rollout runs on
    trainer <--POST /v1/chat/completions------- server     for each model call
    trainer <--POST /v1/rollout/completed------ server     once, when the rollout has ended

From the wire to the agent and back:

    app          the ASGI application and its life cycle
    http         requests and replies, who may ask, one handler a path, uvicorn
    service      admission, the life of a rollout, draining
    rollouts     the records: one a rollout, found again by its identity
    execution    one rollout within its time, in its own thread
    trainer      calls to the trainer, delivery of results, allowed addresses, registration
    events       the log's lines
    settings     limits, deadlines and rules
"""
