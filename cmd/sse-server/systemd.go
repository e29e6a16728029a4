package main

import (
	"log/slog"

	systemd "github.com/coreos/go-systemd/v22/daemon"
)

// notify tells systemd a state, such as systemd.SdNotifyReady, if it waits for one
// (Type=notify). A reload is between SdNotifyReloading and SdNotifyReady.
func notify(log *slog.Logger, state string) {
	if _, err := systemd.SdNotify(false, state); err != nil {
		log.Warn("systemd not notified", "state", state, "err", err)
	}
}
