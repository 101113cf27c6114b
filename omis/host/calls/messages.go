package calls

import (
	"encoding/binary"

	"mirador/omis/host/prototype"
)

// The result of sendmmsg and recvmmsg is a number of messages. How many bytes each of them had is in
// the array of struct mmsghdr that is their second argument.
const (
	SizeOfMessage = 64   // of struct mmsghdr
	LengthAt      = 56   // mmsghdr.msg_len, of 32 bits
	MostMessages  = 1024 // the kernel takes no more in a call (UIO_MAXIOV)
)

// HasMessages reports whether a system call transfers an array of messages.
func HasMessages(call string) bool { return call == "sendmmsg" || call == "recvmmsg" }

// messageBytes returns the number of bytes of the first n messages of an array.
func messageBytes(array uint64, n int64, mem prototype.Memory) (sum int64) {
	var length [4]byte
	for i := range uint64(min(max(n, 0), MostMessages)) {
		if got, _ := mem(length[:], array+SizeOfMessage*i+LengthAt); got < len(length) {
			break
		}
		sum += int64(binary.LittleEndian.Uint32(length[:]))
	}
	return sum
}
