#!/bin/bash
#SBATCH --job-name="rfm_MiniFE_313b5d71"
#SBATCH --ntasks=4
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=24
#SBATCH --output=rfm_job.out
#SBATCH --error=rfm_job.err
#SBATCH --time=0:5:0
#SBATCH --partition=batch
#SBATCH --account=staff
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --no-requeue
export OMP_NUM_THREADS=24
export OMP_PLACES=cores
export OMP_PROC_BIND=close
export I_MPI_PIN_CELL=core
export I_MPI_PIN_DOMAIN=24:compact
export I_MPI_PIN=1
export I_MPI_JOB_RESPECT_PROCESS_PLACEMENT=0
export I_MPI_DEBUG=10
export I_MPI_FABRICS=shm:ofi
export I_MPI_OFI_PROVIDER=psm2
export FI_PROVIDER=psm2
export LD_PRELOAD=/built/build/libassay_witness.so
export ASSAY_WITNESS=placement,fabric,profile,matrix
export ASSAY_WITNESS_REPORT=witness.json
export ASSAY_WITNESS_DEADLINE=$(date -d '+270 seconds' +%s)
export ASSAY_WITNESS_LAUNCHED=$(date +%s%N)
mpirun -np 4 -ppn 2 /built/build/minife nx=55 ny=55 nz=55 verify_solution=1
