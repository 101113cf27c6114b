// Package persist has what outlives a monitor that is killed: kernel objects, and records of what they
// contain. Each data directory has a folder in the BPF file system, in which objects are pinned; an
// object exists as long as its file does. The records are in the journal of the data directory.
//
// Only omis/place/kernel and cli/doctor import it. Of ours it imports omis, omis/node, omis/program,
// omis/host/proc and omis/place/kernel/code. The process that has locked the data directory owns its
// Folder and State; both may be used by one goroutine at a time.
package persist
