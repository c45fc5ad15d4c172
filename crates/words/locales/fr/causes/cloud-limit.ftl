cloud-limit-title = La limite du fournisseur de cloud est atteinte
