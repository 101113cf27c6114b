package gateway

import (
	"compress/gzip"
	"net/http"
	"sync"
)

// worthCompressing is the size from which on compression saves time. Most replies are smaller
// and not compressed; structures and the page are larger.
const worthCompressing = 4 << 10

var compressors = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is a valid one
	return w
}}

// sendCompressed writes a whole reply, compressed by gzip if the caller accepts this and the
// reply is large enough.
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
	w.Write(body) // an error means that the connection is closed
	w.Close()
}
