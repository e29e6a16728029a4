package diagnosis

import (
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
)

// A proxy that is not there is told as such: the server is not the one to look at.
func TestAProxyThatIsNotThere(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for err, want := range map[error][2]string{
		&net.OpError{Op: "proxyconnect", Net: "tcp", Err: refused}: {"nothing listens at the proxy (connection refused)", "check the proxy that HTTP_PROXY"},
		refused:               {"nothing listens there (connection refused)", "see whether the server runs"},
		errors.New("http: x"): {"x", "see whether the server runs"},
	} {
		if got := unanswered(err); got.what != want[0] || !strings.HasPrefix(got.remedy, want[1]) {
			t.Errorf("%v: got %+v, want %q", err, *got, want)
		}
	}
}
