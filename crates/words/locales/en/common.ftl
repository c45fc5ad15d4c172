# Words that many parts use.

yes = yes
no = no
direction-upload = upload
direction-download = download
