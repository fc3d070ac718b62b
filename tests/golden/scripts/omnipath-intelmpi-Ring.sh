#!/bin/bash
#SBATCH --job-name="rfm_Ring_21da286f"
#SBATCH --ntasks=192
#SBATCH --ntasks-per-node=48
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
export I_MPI_PIN_CELL=core
export I_MPI_PIN_DOMAIN=1:compact
export I_MPI_PIN=1
export I_MPI_JOB_RESPECT_PROCESS_PLACEMENT=0
export I_MPI_DEBUG=10
export I_MPI_FABRICS=shm:ofi
export I_MPI_OFI_PROVIDER=psm2
export FI_PROVIDER=psm2
export LD_PRELOAD=/built/build/libassay_witness.so
export ASSAY_WITNESS=placement,fabric
export ASSAY_WITNESS_REPORT=witness.json
export ASSAY_WITNESS_DEADLINE=$(date -d '+270 seconds' +%s)
export ASSAY_WITNESS_LAUNCHED=$(date +%s%N)
mpirun -np 192 -ppn 48 /built/build/ring --limits --max-words 131072 --ci 0.01 --budget 0.1 --focus 8,1048576 --json result.json
