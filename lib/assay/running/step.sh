#!/usr/bin/env bash
# Runs the script of a case on the first of its nodes, as Slurm runs that of a job: with the
# variables of a job of these nodes alone, and none of the step that this is.
#
# Usage: step.sh SCRIPT OUTPUT ERRORS [NAME=VALUE...]
script=$1 output=$2 errors=$3
shift 3
echo "assay-step $SLURM_STEP_ID"
cpus=$SLURM_CPUS_ON_NODE
for name in ${!SLURM_*} ${!PMI_*} ${!PMIX_*}; do
    case $name in
    PMIX_MCA_*) ;;
    SLURM_CONF | SLURM_CLUSTER_NAME | SLURM_JOB_ID | SLURM_JOBID) ;;
    SLURM_JOB_PARTITION | SLURM_JOB_ACCOUNT | SLURM_JOB_QOS | SLURM_JOB_UID | SLURM_JOB_USER) ;;
    *) unset "$name" ;;
    esac
done
# shellcheck disable=SC2163 # they are assignments
export "$@"
# All of a node, as the allocation has it.
export SLURM_CPUS_ON_NODE=$cpus SLURM_JOB_CPUS_PER_NODE="$cpus(x$SLURM_NNODES)"
"./$script" >"$output" 2>"$errors" </dev/null
echo "assay-exit $?"
