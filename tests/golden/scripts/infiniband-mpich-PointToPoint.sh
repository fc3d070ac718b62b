#!/bin/bash
#SBATCH --job-name="rfm_PointToPoint_e9c631c8"
#SBATCH --ntasks=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=64
#SBATCH --output=rfm_job.out
#SBATCH --error=rfm_job.err
#SBATCH --time=0:5:0
#SBATCH --nodes=2
#SBATCH --partition=gpu
#SBATCH --account=staff
#SBATCH --reservation=maintenance
#SBATCH --constraint=hdr&a100
#SBATCH --gres=gpu:4
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --no-requeue
export UCX_NET_DEVICES=mlx5_0:1
export SLURM_MPI_TYPE=pmi2
export OMP_NUM_THREADS=1
export MPIR_CVAR_DEBUG_SUMMARY=1
export MPIR_CVAR_DEBUG_CVARS=1
export UCX_LOG_LEVEL=info
export FI_LOG_LEVEL=info
export FI_LOG_SUBSYS=ep_ctrl
export MPIR_CVAR_CH4_NETMOD=ucx
export UCX_TLS=self,sm,ib
export LD_PRELOAD=/built/build/libassay_witness.so
export ASSAY_WITNESS=placement,fabric
export ASSAY_WITNESS_REPORT=witness.json
export ASSAY_WITNESS_DEADLINE=$(date -d '+270 seconds' +%s)
export ASSAY_WITNESS_LAUNCHED=$(date +%s%N)
srun --cpus-per-task=64 --ntasks-per-node=1 --distribution=block:block --cpu-bind=none bash part near:infiniband:mlx5_0 1 '' /built/build/pt2pt --limits --pattern ping-pong,bidirectional --max 4194304 --budget 0.08 --focus 8,2048,4194304 --json result.json
