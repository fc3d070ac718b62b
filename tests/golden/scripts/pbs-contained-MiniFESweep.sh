#!/bin/bash
#PBS -N rfm_MiniFESweep
#PBS -o rfm_job.out
#PBS -e rfm_job.err
#PBS -l walltime=6:0:0
#PBS -l select=2:mpiprocs=64:ncpus=64:mem=500gb
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
export ASSAY_WITNESS=placement,fabric,profile,matrix
export ASSAY_WITNESS_REPORT=witness.json
export ASSAY_WITNESS_DEADLINE=$(date -d '+21570 seconds' +%s)
echo 1x1-cache
(cd 1x1-cache && export ASSAY_WITNESS_LAUNCHED=$(date +%s%N) OMP_NUM_THREADS=1 && mpirun -np 1 --map-by slot:PE=1 --bind-to core apptainer exec --bind $PWD /images/mpi.sif /built/build/minife nx=43 ny=43 nz=43 verify_solution=1 >out 2>err; echo $? >exit_code)
echo 2x1-cache
(cd 2x1-cache && export ASSAY_WITNESS_LAUNCHED=$(date +%s%N) OMP_NUM_THREADS=1 && mpirun -np 2 --map-by slot:PE=1 --bind-to core apptainer exec --bind $PWD /images/mpi.sif /built/build/minife nx=43 ny=43 nz=43 verify_solution=1 >out 2>err; echo $? >exit_code)
echo 4x1-cache
(cd 4x1-cache && export ASSAY_WITNESS_LAUNCHED=$(date +%s%N) OMP_NUM_THREADS=1 && mpirun -np 4 --map-by slot:PE=1 --bind-to core apptainer exec --bind $PWD /images/mpi.sif /built/build/minife nx=43 ny=43 nz=43 verify_solution=1 >out 2>err; echo $? >exit_code)
echo 8x1-cache
(cd 8x1-cache && export ASSAY_WITNESS_LAUNCHED=$(date +%s%N) OMP_NUM_THREADS=1 && mpirun -np 8 --map-by slot:PE=1 --bind-to core apptainer exec --bind $PWD /images/mpi.sif /built/build/minife nx=43 ny=43 nz=43 verify_solution=1 >out 2>err; echo $? >exit_code)
echo 16x1-cache
(cd 16x1-cache && export ASSAY_WITNESS_LAUNCHED=$(date +%s%N) OMP_NUM_THREADS=1 && mpirun -np 16 --map-by slot:PE=1 --bind-to core apptainer exec --bind $PWD /images/mpi.sif /built/build/minife nx=43 ny=43 nz=43 verify_solution=1 >out 2>err; echo $? >exit_code)
echo 32x1-cache
(cd 32x1-cache && export ASSAY_WITNESS_LAUNCHED=$(date +%s%N) OMP_NUM_THREADS=1 && mpirun -np 32 --map-by slot:PE=1 --bind-to core apptainer exec --bind $PWD /images/mpi.sif /built/build/minife nx=43 ny=43 nz=43 verify_solution=1 >out 2>err; echo $? >exit_code)
echo 64x1-cache
(cd 64x1-cache && export ASSAY_WITNESS_LAUNCHED=$(date +%s%N) OMP_NUM_THREADS=1 && mpirun -np 64 --map-by slot:PE=1 --bind-to core apptainer exec --bind $PWD /images/mpi.sif /built/build/minife nx=43 ny=43 nz=43 verify_solution=1 >out 2>err; echo $? >exit_code)
echo 128x1-cache
(cd 128x1-cache && export ASSAY_WITNESS_LAUNCHED=$(date +%s%N) OMP_NUM_THREADS=1 && mpirun -np 128 --map-by slot:PE=1 --bind-to core apptainer exec --bind $PWD /images/mpi.sif /built/build/minife nx=43 ny=43 nz=43 verify_solution=1 >out 2>err; echo $? >exit_code)
export ASSAY_WITNESS_LAUNCHED=$(date +%s%N)
true
