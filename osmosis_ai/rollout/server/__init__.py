"""The RolloutServer: runs an agent loop for a trainer, which hosts the model.

    trainer --POST /v1/rollout/init-----------> server     202, the rollout runs on
    trainer <--POST /v1/chat/completions------- server     for each model call
    trainer <--POST /v1/rollout/completed------ server     once, when the rollout has ended

From the wire to the agent and back:

    app              the ASGI application and its life cycle
    http, access     requests and replies; who may ask
    routes           one handler a path
    init_body        the body of an init: JSON, then a checked request
    addresses        which trainers may be called, and at which address
    service          admission, the life of a rollout, draining
    rollouts         the records: one a rollout, found again by its identity
    running          one rollout within its time; execution: whatever it does, one callback body
    workers          the threads in which agents run, away from the server's own loop
    trainer_client   calls to the trainer, with retries; trainer_wire: its connections
    callbacks        each result handed over once, however long the trainer is away
    journal          results on disk, when there is a folder for them
    events           the log's lines and the counters of /metrics
    settings         limits, deadlines and rules
    registration     telling the platform where the server is
    listening        uvicorn, with deadlines for slow clients
"""
