#!/bin/bash
#SBATCH --job-name="rfm_Ring_3cea02ea"
#SBATCH --ntasks=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=128
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
export SLURM_MPI_TYPE=pmix
export OMP_NUM_THREADS=1
export OMPI_MCA_ompi_display_comm=mpi_finalize
export OMPI_MCA_btl_base_verbose=20
export OMPI_MCA_pml_base_verbose=10
export UCX_LOG_LEVEL=info
export FI_LOG_LEVEL=info
export FI_LOG_SUBSYS=ep_ctrl
export OMPI_MCA_pml=cm
export OMPI_MCA_mtl=ofi
export OMPI_MCA_opal_common_ofi_provider_include=cxi
export FI_PROVIDER=cxi
export LD_PRELOAD=/built/build/libassay_witness.so
export ASSAY_WITNESS=placement,fabric
export ASSAY_WITNESS_REPORT=witness.json
export ASSAY_WITNESS_DEADLINE=$(date -d '+270 seconds' +%s)
export ASSAY_WITNESS_LAUNCHED=$(date +%s%N)
srun --cpus-per-task=128 --ntasks-per-node=1 --cpu-bind=none /built/build/ring --limits --max-words 131072 --ci 0.01 --budget 0.1 --focus 8,1048576 --json result.json
