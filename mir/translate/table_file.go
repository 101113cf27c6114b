package translate

import "slices"

// Files are regular files and block devices here, not sockets, pipes and terminals.
var (
	readingFiles = []string{"read", "readv", "pread64", "preadv", "preadv2"}
	writingFiles = []string{"write", "writev", "pwrite64", "pwritev", "pwritev2"}
	syncing      = []string{"fsync", "fdatasync"}
)

// onFiles returns the events of some system calls on files.
func onFiles(service string, names []string) []event {
	list := systemCalls(service, names...)
	for i := range list {
		list[i].call += "@file"
	}
	return list
}

func fileMetrics() []Metric {
	synced := slices.Concat(readingFiles, writingFiles, syncing)
	list := []Metric{
		{Name: "FILE_READ_BYTES", begin: onFiles(ended, readingFiles), amount: true, Doc: "Bytes read from files: results of read, readv, pread64, preadv and preadv2."},
		{Name: "FILE_WRITE_BYTES", begin: onFiles(ended, writingFiles), amount: true, Doc: "Bytes written to files: results of write, writev, pwrite64, pwritev and pwritev2."},
		{Name: "FILE_READ_TIME", begin: onFiles(started, readingFiles), end: systemCalls(ended, readingFiles...), Doc: "Total time of the system calls of FILE_READ_BYTES."},
		{Name: "FILE_WRITE_TIME", begin: onFiles(started, writingFiles), end: systemCalls(ended, writingFiles...), Doc: "Total time of the system calls of FILE_WRITE_BYTES."},
		{Name: "FILE_WAIT_TIME", begin: onFiles(started, synced), end: systemCalls(ended, synced...), clock: "waiting", Doc: "The part of FILE_READ_TIME, FILE_WRITE_TIME and of fsync and fdatasync in which the thread was not ready: it waited for the disk or for a lock in the kernel."},
	}
	for i := range list {
		m := &list[i]
		m.Kind, m.Entities = "counter", allEntities
		m.Doc += " Files are regular files and block devices, not sockets, pipes and terminals. Files that are mapped are read and written without system calls."
		if m.amount {
			m.Unit, m.source, m.Measured = "B", fromEvents, "pa_counter_add_amount of the results of these system calls on files"
		} else {
			m.Unit, m.source, m.Measured = "ms", betweenEvents, "pa_timer_start and pa_timer_stop at the beginning and end of these system calls on files"
		}
	}
	return list
}
