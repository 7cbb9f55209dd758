"""CUPTI's tables of GPU work, which Nsight Systems and NVProf share."""
