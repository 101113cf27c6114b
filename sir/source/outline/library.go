package outline

import "strings"

// library says what functions of libraries do, by their names in lower case.
var library = byName(map[string]string{
	"send": `mpi_send mpi_isend mpi_bsend mpi_ibsend mpi_ssend mpi_issend mpi_rsend mpi_irsend mpi_send_init mpi_psend_init mpi_put mpi_rput
			pvm_send pvm_psend pvm_mcast pvmfsend pvmfpsend pvmfmcast`,
	"receive": `mpi_recv mpi_irecv mpi_mrecv mpi_imrecv mpi_recv_init mpi_precv_init mpi_probe mpi_iprobe mpi_get mpi_rget
			pvm_recv pvm_nrecv pvm_precv pvm_trecv pvm_probe pvmfrecv pvmfnrecv pvmfprecv pvmftrecv pvmfprobe`,
	"exchange": `mpi_sendrecv mpi_sendrecv_replace mpi_isendrecv`,
	"wait":     `mpi_wait mpi_waitall mpi_waitany mpi_waitsome mpi_test mpi_testall mpi_testany mpi_testsome pthread_join pthread_cond_wait pthread_cond_timedwait sem_wait`,
	"barrier":  `mpi_barrier mpi_ibarrier mpi_win_fence pvm_barrier pvmfbarrier pthread_barrier_wait`,
	"collective": `mpi_bcast mpi_ibcast mpi_scatter mpi_scatterv mpi_iscatter mpi_gather mpi_gatherv mpi_igather mpi_allgather mpi_allgatherv mpi_iallgather
			mpi_alltoall mpi_alltoallv mpi_alltoallw mpi_ialltoall mpi_reduce mpi_ireduce mpi_allreduce mpi_iallreduce mpi_reduce_scatter mpi_scan mpi_exscan
			pvm_bcast pvm_scatter pvm_gather pvm_reduce pvmfbcast pvmfscatter pvmfgather pvmfreduce`,
	"io": `printf fprintf vprintf vfprintf puts fputs putchar putc fputc scanf fscanf fgets getchar getc fgetc fopen fclose fread fwrite fflush fseek
			read write open close pread pwrite lseek mpi_file_open mpi_file_read mpi_file_write mpi_file_read_at mpi_file_write_at mpi_file_read_all mpi_file_write_all mpi_file_close`,
	"allocation": `malloc calloc realloc free aligned_alloc posix_memalign mmap munmap`,
	"lock":       `pthread_mutex_lock pthread_mutex_trylock pthread_rwlock_rdlock pthread_rwlock_wrlock pthread_spin_lock mtx_lock omp_set_lock omp_set_nest_lock mpi_win_lock`,
	"unlock":     `pthread_mutex_unlock pthread_rwlock_unlock pthread_spin_unlock mtx_unlock omp_unset_lock omp_unset_nest_lock mpi_win_unlock`,
	"spawn":      `pthread_create thrd_create fork vfork mpi_comm_spawn pvm_spawn pvmfspawn`,
})

func byName(names map[string]string) map[string]string {
	all := map[string]string{}
	for does, list := range names {
		for name := range strings.FieldsSeq(list) {
			all[name] = does
		}
	}
	return all
}

// Does returns what a call does, "" if it is not known: send, receive, barrier, collective, io,
// allocation, lock and so on.
func Does(function string) string { return library[strings.ToLower(function)] }
