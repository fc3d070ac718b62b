for v in ${!SLURM_*}; do case $v in SLURM_CONF|SLURM_JOB_ID|SLURM_JOBID) ;; *) unset $v;; esac; done
echo rel;  srun --relative=1 -N1 -n1 hostname
echo excl; srun --exclude=n4,n1 -N1 -n1 hostname
echo excl2; srun --exclude=n4,n1 -N2 -n2 hostname
echo exclenv; SLURM_EXCLUDE=n1 srun -N1 -n1 hostname
