#!/bin/bash
#SBATCH --job-name="rfm_PointToPoint_7c7fb95e"
#SBATCH --ntasks=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=1
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
export SLURM_MPI_TYPE=pmix
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
srun --cpus-per-task=1 --ntasks-per-node=1 --distribution=block:block --cpu-bind=cores /built/build/pt2pt --limits --pattern ping-pong,bidirectional --max 4194304 --budget 0.08 --focus 8,2048,4194304 --json result.json
