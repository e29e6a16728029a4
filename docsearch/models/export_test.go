package models

// WithoutPause has an Installer try again at once.
func (i *Installer) WithoutPause() { i.pause = 1 }
