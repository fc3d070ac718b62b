#!/bin/bash
#PBS -N rfm_PointToPoin
#PBS -o rfm_job.out
#PBS -e rfm_job.err
#PBS -l walltime=0:5:0
#PBS -l select=2:mpiprocs=1:ncpus=1:mem=500gb
#PBS -A staff
#PBS -q workq
#PBS -l place=scatter:exclhost
#PBS -r n
cd /stage
export UCX_NET_DEVICES=mlx5_0:1
export OMP_NUM_THREADS=1
export OMPI_MCA_ompi_display_comm=mpi_finalize
export OMPI_MCA_btl_base_verbose=20
export OMPI_MCA_pml_base_verbose=10
export UCX_LOG_LEVEL=info
export FI_LOG_LEVEL=info
export FI_LOG_SUBSYS=ep_ctrl
export OMPI_MCA_pml=ucx
export OMPI_MCA_btl='^ofi,openib,uct'
export OMPI_MCA_opal_common_ucx_tls=any
export OMPI_MCA_opal_common_ucx_devices=any
export UCX_TLS=self,sm,ib
export LD_PRELOAD=/built/build/libassay_witness.so
export ASSAY_WITNESS=placement,fabric
export ASSAY_WITNESS_REPORT=witness.json
export ASSAY_WITNESS_DEADLINE=$(date -d '+270 seconds' +%s)
export ASSAY_WITNESS_LAUNCHED=$(date +%s%N)
mpirun -np 2 --map-by slot:PE=1 --bind-to core /built/build/pt2pt --limits --pattern ping-pong,bidirectional --max 4194304 --budget 0.08 --focus 8,2048,4194304 --json result.json
