"""Where servers come from. `provider.py` says what a provider is; each of the others is one."""

from linnet.fleet.providers.ec2 import EC2
from linnet.fleet.providers.local import Local
from linnet.fleet.providers.provider import Place, Provider, Seen
from linnet.fleet.providers.simulated import Simulated
from linnet.fleet.providers.slurm import Slurm

__all__ = ["EC2", "Local", "Place", "Provider", "Seen", "Simulated", "Slurm"]
