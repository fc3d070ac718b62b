#!/bin/bash
#PBS -N rfm_Ring_e70d21
#PBS -o rfm_job.out
#PBS -e rfm_job.err
#PBS -l walltime=0:5:0
#PBS -l select=4:mpiprocs=64:ncpus=64:mem=500gb
#PBS -A staff
#PBS -q workq
#PBS -l place=scatter:exclhost
#PBS -r n
cd /stage
export UCX_NET_DEVICES=mlx5_0:1
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
mpirun -np 256 -ppn 64 -bind-to core:1 -map-by numa /built/build/ring --limits --max-words 131072 --ci 0.01 --budget 0.1 --focus 8,1048576 --json result.json
