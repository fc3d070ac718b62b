#!/bin/bash
#SBATCH --job-name="rfm_Ring_119e4e9c"
#SBATCH --ntasks=32
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=16
#SBATCH --output=rfm_job.out
#SBATCH --error=rfm_job.err
#SBATCH --time=0:5:0
#SBATCH --partition=standard
#SBATCH --account=staff
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --threads-per-core=1
#SBATCH --network=single_node_vni
#SBATCH --no-requeue
export SLURM_MPI_TYPE=pmi2
export OMP_NUM_THREADS=1
export MPIR_CVAR_DEBUG_SUMMARY=1
export MPIR_CVAR_DEBUG_CVARS=1
export UCX_LOG_LEVEL=info
export FI_LOG_LEVEL=info
export FI_LOG_SUBSYS=ep_ctrl
export MPIR_CVAR_CH4_NETMOD=ofi
export FI_PROVIDER=cxi
export MPIR_CVAR_SINGLE_HOST_ENABLED=0
export LD_PRELOAD=/built/build/libassay_witness.so
export ASSAY_WITNESS=placement,fabric
export ASSAY_WITNESS_REPORT=witness.json
export ASSAY_WITNESS_DEADLINE=$(date -d '+270 seconds' +%s)
export ASSAY_WITNESS_LAUNCHED=$(date +%s%N)
srun --cpus-per-task=16 --ntasks-per-node=8 --distribution=block:cyclic --cpu-bind=ldoms /built/build/ring --limits --max-words 131072 --ci 0.01 --budget 0.1 --focus 8,1048576 --json result.json
