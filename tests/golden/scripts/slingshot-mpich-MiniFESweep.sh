#!/bin/bash
#SBATCH --job-name="rfm_MiniFESweep_d12c4ec9"
#SBATCH --ntasks=256
#SBATCH --ntasks-per-node=128
#SBATCH --cpus-per-task=1
#SBATCH --output=rfm_job.out
#SBATCH --error=rfm_job.err
#SBATCH --time=6:0:0
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
export ASSAY_WITNESS=placement,fabric,profile,matrix
export ASSAY_WITNESS_REPORT=witness.json
export ASSAY_WITNESS_DEADLINE=$(date -d '+21570 seconds' +%s)
echo 1x1-cache
(cd 1x1-cache && export ASSAY_WITNESS_LAUNCHED=$(date +%s%N) OMP_NUM_THREADS=1 && srun --ntasks-per-node=1 --distribution=block:block --cpu-bind=cores --nodes=1 --ntasks=1 --cpus-per-task=1 /built/build/minife nx=69 ny=69 nz=69 verify_solution=1 >out 2>err; echo $? >exit_code)
echo 2x1-cache
(cd 2x1-cache && export ASSAY_WITNESS_LAUNCHED=$(date +%s%N) OMP_NUM_THREADS=1 && srun --ntasks-per-node=2 --distribution=block:block --cpu-bind=cores --nodes=1 --ntasks=2 --cpus-per-task=1 /built/build/minife nx=69 ny=69 nz=69 verify_solution=1 >out 2>err; echo $? >exit_code)
echo 4x1-cache
(cd 4x1-cache && export ASSAY_WITNESS_LAUNCHED=$(date +%s%N) OMP_NUM_THREADS=1 && srun --ntasks-per-node=4 --distribution=block:block --cpu-bind=cores --nodes=1 --ntasks=4 --cpus-per-task=1 /built/build/minife nx=69 ny=69 nz=69 verify_solution=1 >out 2>err; echo $? >exit_code)
echo 8x1-cache
(cd 8x1-cache && export ASSAY_WITNESS_LAUNCHED=$(date +%s%N) OMP_NUM_THREADS=1 && srun --ntasks-per-node=8 --distribution=block:block --cpu-bind=cores --nodes=1 --ntasks=8 --cpus-per-task=1 /built/build/minife nx=69 ny=69 nz=69 verify_solution=1 >out 2>err; echo $? >exit_code)
echo 16x1-cache
(cd 16x1-cache && export ASSAY_WITNESS_LAUNCHED=$(date +%s%N) OMP_NUM_THREADS=1 && srun --ntasks-per-node=16 --distribution=block:block --cpu-bind=cores --nodes=1 --ntasks=16 --cpus-per-task=1 /built/build/minife nx=69 ny=69 nz=69 verify_solution=1 >out 2>err; echo $? >exit_code)
echo 32x1-cache
(cd 32x1-cache && export ASSAY_WITNESS_LAUNCHED=$(date +%s%N) OMP_NUM_THREADS=1 && srun --ntasks-per-node=32 --distribution=block:block --cpu-bind=cores --nodes=1 --ntasks=32 --cpus-per-task=1 /built/build/minife nx=69 ny=69 nz=69 verify_solution=1 >out 2>err; echo $? >exit_code)
echo 64x1-cache
(cd 64x1-cache && export ASSAY_WITNESS_LAUNCHED=$(date +%s%N) OMP_NUM_THREADS=1 && srun --ntasks-per-node=64 --distribution=block:block --cpu-bind=cores --nodes=1 --ntasks=64 --cpus-per-task=1 /built/build/minife nx=69 ny=69 nz=69 verify_solution=1 >out 2>err; echo $? >exit_code)
echo 128x1-cache
(cd 128x1-cache && export ASSAY_WITNESS_LAUNCHED=$(date +%s%N) OMP_NUM_THREADS=1 && srun --ntasks-per-node=128 --distribution=block:block --cpu-bind=cores --nodes=1 --ntasks=128 --cpus-per-task=1 /built/build/minife nx=69 ny=69 nz=69 verify_solution=1 >out 2>err; echo $? >exit_code)
echo 256x1-cache
(cd 256x1-cache && export ASSAY_WITNESS_LAUNCHED=$(date +%s%N) OMP_NUM_THREADS=1 && srun --ntasks-per-node=128 --distribution=block:block --cpu-bind=cores --nodes=2 --ntasks=256 --cpus-per-task=1 /built/build/minife nx=69 ny=69 nz=69 verify_solution=1 >out 2>err; echo $? >exit_code)
export ASSAY_WITNESS_LAUNCHED=$(date +%s%N)
true
