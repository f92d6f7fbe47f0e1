"""Agent libraries on a rollout: its URL and key as their model, their conversation as its sample.

    openai_agents    the OpenAI Agents SDK
    strands          Strands Agents

Each module imports its library, which is the user's.
"""
