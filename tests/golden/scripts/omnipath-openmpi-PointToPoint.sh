#!/bin/bash
#SBATCH --job-name="rfm_PointToPoint_df0919ca"
#SBATCH --ntasks=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=1
#SBATCH --output=rfm_job.out
#SBATCH --error=rfm_job.err
#SBATCH --time=0:5:0
#SBATCH --partition=batch
#SBATCH --account=staff
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --no-requeue
export OMP_NUM_THREADS=1
export OMPI_MCA_ompi_display_comm=mpi_finalize
export OMPI_MCA_btl_base_verbose=20
export OMPI_MCA_pml_base_verbose=10
export UCX_LOG_LEVEL=info
export FI_LOG_LEVEL=info
export FI_LOG_SUBSYS=ep_ctrl
export OMPI_MCA_pml=cm
export OMPI_MCA_mtl=ofi
export OMPI_MCA_opal_common_ofi_provider_include=psm2
export FI_PROVIDER=psm2
export LD_PRELOAD=/built/build/libassay_witness.so
export ASSAY_WITNESS=placement,fabric
export ASSAY_WITNESS_REPORT=witness.json
export ASSAY_WITNESS_DEADLINE=$(date -d '+270 seconds' +%s)
export ASSAY_WITNESS_LAUNCHED=$(date +%s%N)
mpirun -np 2 --map-by slot:PE=1 --bind-to core /built/build/pt2pt --limits --pattern ping-pong,bidirectional --max 4194304 --budget 0.08 --focus 8,2048,4194304 --json result.json
