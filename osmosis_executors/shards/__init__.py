"""The processes of an evaluation on several machines, and how they and the driver are connected."""
