"""EC2's fleet requests: one server, wherever among several zones it is to be had.

A fleet request names a launch template instead of an instance. Each server has its own, under its own name,
since its user data say who it is; it is deleted once the request was answered. The instance carries the same
tags as one that was asked for alone, so it is found in the same way if the answer is lost.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, cast

_TEMPLATE_LACKS = {"MinCount", "MaxCount", "ClientToken", "InstanceMarketOptions", "Placement"}


def ask_fleet(cloud: Any, name: str, request: Mapping[str, Any], zones: Sequence[str]) -> list[str]:
    """Ask for one server in any of these zones; the codes of errors if none came.

    Parameters
    ----------
    cloud : a boto3 client of EC2
    name : of the server
    request : what `run_instances` would be given
    zones : where it may be
    """
    from botocore.exceptions import ClientError  # pyright: ignore

    data = {key: value for key, value in request.items() if key not in _TEMPLATE_LACKS}
    data["UserData"] = base64.b64encode(str(data["UserData"]).encode()).decode()
    try:
        cloud.create_launch_template(LaunchTemplateName=name, LaunchTemplateData=data)
    except ClientError as error:
        if "AlreadyExists" not in str(cast("Any", error).response["Error"]["Code"]):
            raise
    spot = "InstanceMarketOptions" in request
    strategy = {"AllocationStrategy": "price-capacity-optimized", "InstanceInterruptionBehavior": "terminate"}
    try:
        answer = cloud.create_fleet(
            Type="instant",
            ClientToken=name,
            LaunchTemplateConfigs=[
                {
                    "LaunchTemplateSpecification": {"LaunchTemplateName": name, "Version": "$Latest"},
                    "Overrides": [
                        {"InstanceType": request["InstanceType"], "AvailabilityZone": zone} for zone in zones
                    ],
                }
            ],
            TargetCapacitySpecification={
                "TotalTargetCapacity": 1,
                "DefaultTargetCapacityType": "spot" if spot else "on-demand",
            },
            **({"SpotOptions": strategy} if spot else {}),
        )
    finally:
        with contextlib.suppress(ClientError):
            cloud.delete_launch_template(LaunchTemplateName=name)
    if any(each.get("InstanceIds") for each in answer.get("Instances") or ()):
        return []
    return [str(each["ErrorCode"]) for each in answer.get("Errors") or ()] or ["UnfulfillableCapacity"]
