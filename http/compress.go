package gateway

import (
	"compress/gzip"
	"net/http"
	"sync"
)

// worthCompressing is the size from which compressing a reply pays. Replies to
// requests are small and never compressed; structures and the page are not.
const worthCompressing = 4 << 10

var compressors = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is a valid one
	return w
}}

// sendCompressed writes a whole reply, with gzip if the caller takes it and it
// pays.
func sendCompressed(x *exchange, contentType string, body []byte) {
	if len(body) < worthCompressing || x.r.Method == http.MethodHead || !takesGzip(x.r) {
		send(x, http.StatusOK, contentType, body)
		return
	}
	x.Header().Set("Content-Type", contentType)
	x.Header().Set("Content-Encoding", "gzip")
	x.WriteHeader(http.StatusOK)
	w := compressors.Get().(*gzip.Writer)
	defer compressors.Put(w)
	w.Reset(x)
	w.Write(body) // an error means that the caller is gone
	w.Close()
}
